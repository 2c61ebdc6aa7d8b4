// Remote memory between processes, which are threads here: what is exposed, opened, read, written,
// notified of, published and revoked.
#include "csrc/remote/remote.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "csrc/remote/publication.h"
#include "csrc/transport/shm/transport.h"
#include "csrc/transport/tcp/transport.h"
#include "tests/how_much.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll::remote_test {
namespace {

TEST_P(RemoteTest, ReadsWhatIsExposed) {
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 1) {
      const auto memory = p.memory(1 << 20, Others::OnlyRead);
      for (uint64_t i = 0; i < memory->bytes(); ++i) memory->data()[i] = std::byte(i % 251);
      p.expose({.name = "w", .bytes = 100'000, .meta = "what it is"}, memory, 4096);
      p.meet();
      return;
    }
    const OpenedPtr w = p.open("w", 1);  // waits until it is exposed
    EXPECT_EQ(w->info.bytes, 100'000u);
    EXPECT_EQ(w->info.meta, "what it is");
    std::vector<std::byte> all(100'000);
    p.good(p.remote().read(w, 0, all.data(), all.size(), kSoonMs));
    for (uint64_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], std::byte((4096 + i) % 251));
    std::vector<std::byte> part(16);
    p.good(p.remote().read(w, 99'984, part.data(), part.size(), kSoonMs));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.end() - 16));
    p.good(p.remote().read(w, 100'000, nullptr, 0, kSoonMs));
    const Status outside = p.wait(p.remote().read(w, 99'985, part.data(), 16, kSoonMs));
    EXPECT_EQ(outside.code(), StatusCode::InvalidArgument);
    EXPECT_NE(outside.message().find("'w', which has 100000"), std::string::npos);
    const Status refused = p.wait(p.remote().write(w, 0, part.data(), 16, 0, kSoonMs));
    EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
    p.meet();
  });
}

TEST_P(RemoteTest, NotifiesAfterTheData) {
  constexpr uint64_t kWords = 3'000'000;
  constexpr uint64_t kRounds = 5;
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 1) {
      const auto memory = p.memory(kWords * 8, Others::Write);
      p.expose({.name = "x", .bytes = kWords * 8, .is_writable = true}, memory, 0);
      const auto* words = reinterpret_cast<const uint64_t*>(memory->data());
      for (uint64_t round = 1; round <= kRounds; ++round) {
        p.good(p.remote().wait_notified("x", round, kSoonMs).take());
        ASSERT_TRUE(std::all_of(words, words + kWords, [&](uint64_t w) { return w == round; }));
        p.meet();
      }
      const Status late = p.wait(p.remote().wait_notified("x", kRounds + 1, 30).take());
      EXPECT_EQ(late.code(), StatusCode::Timeout);
      EXPECT_EQ(p.remote().notified("x").value(), kRounds);
      return;
    }
    const OpenedPtr x = p.open("x", 1);
    for (uint64_t round = 1; round <= kRounds; ++round) {
      std::vector<uint64_t> words(kWords, round);
      p.good(p.remote().write(x, 0, words.data(), kWords * 8, round, kSoonMs));
      p.meet();
    }
    const uint64_t word = 9;
    const Status again = p.wait(p.remote().write(x, 0, &word, 8, kRounds, kSoonMs));
    EXPECT_EQ(again.code(), StatusCode::InvalidArgument);
  });
}

TEST_P(RemoteTest, AFenceComesBehindWhatWasWritten) {
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 1) {
      const auto memory = p.memory(8 << 20, Others::Write);
      p.expose({.name = "x", .bytes = 8 << 20, .is_writable = true}, memory, 0);
      p.meet();
      EXPECT_TRUE(std::all_of(memory->data(), memory->data() + memory->bytes(),
                              [](std::byte b) { return b == std::byte{3}; }));
      p.meet();
      return;
    }
    const OpenedPtr x = p.open("x", 1);
    const std::vector<std::byte> data(8 << 20, std::byte{3});
    const WorkPtr write = p.remote().write(x, 0, data.data(), data.size(), 0, kSoonMs);
    p.good(p.remote().fence(x, kSoonMs));
    EXPECT_TRUE(write->done());
    p.meet();
    p.meet();
  });
}

TEST_P(RemoteTest, SnapshotsAreWholeVersions) {
  constexpr uint64_t kWords = 20'000;
  constexpr uint64_t kVersions = kThreadSanitized ? 20 : 400;
  std::atomic<uint64_t> read[2] = {};  // the versions that the readers have
  // A reader that is late reads what is being written, and then knows it. To ThreadSanitizer that
  // is a race, as it is one thread that reads and one that writes.
  const auto wait_for_readers = [&](uint64_t version) {
    while (kThreadSanitized && (read[0] < version || read[1] < version)) std::this_thread::yield();
  };
  run(3, [&](RemoteProcess& p) {
    constexpr uint64_t kBytes = kWords * 8;
    if (p.rank() == 2) {
      const auto memory = p.memory(versions_bytes(kBytes), Others::OnlyRead);
      p.expose({.name = "m", .bytes = kBytes, .has_versions = true}, memory, 0);
      Publication publication(memory, 0, kBytes);
      for (uint64_t version = 1; version <= kVersions; ++version) {
        auto* words = reinterpret_cast<uint64_t*>(publication.begin());
        std::fill(words, words + kWords, version);
        ASSERT_EQ(publication.complete(), version);
        wait_for_readers(version);
      }
      p.meet();
      return;
    }
    const OpenedPtr m = p.open("m", 2);
    const std::vector<MovedRange> whole{{0, 0, kBytes}};
    std::vector<uint64_t> words(kWords);
    uint64_t newest = 0;
    auto version = std::make_shared<uint64_t>(0);
    while (newest < kVersions) {
      p.good(p.remote().snapshot(m, words.data(), kBytes, whole, newest, version, kSoonMs));
      if (*version == 0) continue;
      ASSERT_GT(*version, newest);
      newest = *version;
      read[p.rank()] = newest;
      ASSERT_TRUE(std::all_of(words.begin(), words.end(), [&](uint64_t w) { return w == newest; }));
    }
    p.good(p.remote().snapshot(m, words.data(), kBytes, whole, kVersions, version, kSoonMs));
    EXPECT_EQ(*version, 0u) << "there is no newer one";
    p.meet();
  });
}

TEST_P(RemoteTest, WhatIsRevokedIsReadNoMore) {
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 1) {
      const auto memory = p.memory(4096, Others::Write);
      p.expose({.name = "x", .bytes = 4096, .is_writable = true}, memory, 0);
      p.meet();
      EXPECT_EQ(p.remote().stats().openings, 1u);
      ASSERT_TRUE(p.remote().revoke("x", kSoonMs, {}).ok());
      EXPECT_EQ(p.remote().stats().openings, 0u);
      EXPECT_EQ(p.remote().revoke("x", kSoonMs, {}).status().code(), StatusCode::InvalidArgument);
      p.meet();
      p.expose({.name = "x", .bytes = 64}, memory, 0);
      p.meet();
      return;
    }
    OpenedPtr x = p.open("x", 1);
    p.meet();
    p.meet();
    uint64_t word = 0;
    const Status read = p.wait(p.remote().read(x, 0, &word, 8, kSoonMs));
    EXPECT_EQ(read.code(), StatusCode::Aborted);
    EXPECT_NE(read.message().find("rank 1 has taken 'x' back"), std::string::npos)
        << read.message();
    EXPECT_FALSE(p.wait(p.remote().write(x, 0, &word, 8, 1, kSoonMs)).ok());
    EXPECT_FALSE(p.wait(p.remote().fence(x, kSoonMs)).ok());
    const OpenedPtr anew = p.open("x", 1);
    p.good(p.remote().read(anew, 0, &word, 8, kSoonMs));
    EXPECT_EQ(anew->info.bytes, 64u);
    p.meet();
  });
}

// Its id is used again, and nothing stays pinned.
// The word may come when the memory is closed here, and the line in which it comes is free again.
TEST_P(RemoteTest, AWordThatMemoryWasTakenBackIsNoNotification) {
  run(2, [&](RemoteProcess& p) {
    const int other = 1 - p.rank();
    const SessionPtr session = p.session_with(other);
    const uint32_t stop = *session->take_line(Session::LineUse::Stop);
    session->give_line_back(stop);
    const uint32_t notify = *session->take_line(Session::LineUse::Notify);
    EXPECT_NE(stop, notify);
    session->give_line_back(notify);
    const auto memory = p.memory(4096, Others::Write);
    for (int round = 0; round < (is_nightly() ? 1000 : 50); ++round) {
      const auto name_at = [&](int rank) {
        return "r" + std::to_string(round) + "/" + std::to_string(rank);
      };
      p.expose({.name = name_at(p.rank()), .bytes = 4096, .is_writable = true}, memory, 0);
      const OpenedPtr there = p.open(name_at(other), other);
      p.meet();
      EXPECT_EQ(p.remote().notified(name_at(p.rank())).value(), 0u) << round;
      p.meet();
      p.remote().close(there);
      ASSERT_TRUE(p.remote().revoke(name_at(p.rank()), kSoonMs, {}).ok());
    }
    p.meet();
  });
}

TEST_P(RemoteTest, MemoryThatIsGoneIsClosedByAll) {
  run(3, [](RemoteProcess& p) {
    for (int round = 0; round < 20; ++round) {
      if (p.rank() == 0) {
        const auto memory = p.memory(4096, Others::OnlyRead);
        memory->data()[0] = std::byte(round);
        const std::string name = "r" + std::to_string(round);
        p.expose({.name = name, .bytes = 64}, memory, 0);
        p.meet();
        ASSERT_TRUE(p.remote().revoke(name, kSoonMs, {}).ok());
      } else {
        const OpenedPtr r = p.open("r" + std::to_string(round), 0);
        std::byte first{};
        p.good(p.remote().read(r, 0, &first, 1, kSoonMs));
        EXPECT_EQ(first, std::byte(round));
        p.remote().close(r);
        p.meet();
      }
      p.meet();
    }
    EXPECT_EQ(p.remote().stats().memory_bytes, 0u);
    EXPECT_EQ(p.remote().stats().opened, 0u);
  });
}

// They know nothing of each other but what the address says.
TEST_P(RemoteTest, ProcessesOfNoGroupMeetByAddress) {
  const auto network = GetParam().network != nullptr ? GetParam().network() : nullptr;
  for (int i = 0; i < 4; ++i) {  // which of the two has the smaller id is chance
    const std::string hosts[] = {"one", GetParam().one_host ? "one" : "other"};
    RankOver owner(hosts[0], GetParam().open), reader(hosts[1], GetParam().open);
    const auto remote_of = [](RankOver& of) {
      return std::make_unique<Remote>(
          RemoteContext{of.transports(), of.sessions(), of.progress(), of.clock(), nullptr});
    };
    const auto owners = remote_of(owner), readers = remote_of(reader);
    auto memory = owners->allocate(4096, Others::OnlyRead);
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    memory.value()->data()[7] = std::byte{42};
    ASSERT_TRUE(owners->expose({.name = "w", .bytes = 64}, memory.take(), 0).ok());
    auto opened = readers->open(owner.transports().local_address(), "the owner", "w", kSoonMs, {});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    std::byte got{};
    const auto read = readers->read(opened.value(), 7, &got, 1, kSoonMs);
    const Status status = readers->wait(*read, -1, {});
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(got, std::byte{42});
  }
}

TEST_P(RemoteTest, SaysWhatIsWrong) {
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 1) {
      const auto memory = p.memory(4096, Others::OnlyRead);
      const auto expose = [&](ExposureInfo info, uint64_t offset) {
        return p.remote().expose(std::move(info), memory, offset);
      };
      EXPECT_EQ(expose({.name = "", .bytes = 1}, 0).code(), StatusCode::InvalidArgument);
      EXPECT_EQ(expose({.name = std::string(256, 'x'), .bytes = 1}, 0).code(),
                StatusCode::InvalidArgument);
      EXPECT_EQ(expose({.name = "x", .bytes = 4097}, 0).code(), StatusCode::InvalidArgument);
      EXPECT_EQ(expose({.name = "x", .bytes = 1}, 4096).code(), StatusCode::InvalidArgument);
      EXPECT_EQ(expose({.name = "x", .bytes = 1, .is_writable = true}, 0).code(),
                StatusCode::InvalidArgument);
      EXPECT_EQ(expose({.name = "x", .bytes = 1, .meta = std::string(513, 'x')}, 0).code(),
                StatusCode::InvalidArgument);
      EXPECT_TRUE(expose({.name = "x", .bytes = 1}, 0).ok());
      EXPECT_EQ(expose({.name = "x", .bytes = 1}, 0).code(), StatusCode::InvalidArgument);
      EXPECT_FALSE(p.remote().notified("y").ok());
      EXPECT_FALSE(p.remote().wait_notified("y", 1, 10).ok());
    } else {
      const auto missing = p.remote().open(p.address(1), "rank 1", "nothing", 50, {});
      EXPECT_EQ(missing.status().code(), StatusCode::Timeout);
      EXPECT_NE(missing.status().message().find("name='nothing'"), std::string::npos);
    }
    p.meet();
  });
}

TEST_P(RemoteTest, TheEndOfAnOwnerFailsWhatIsOpenThere) {
  run(3, [](RemoteProcess& p) {
    if (p.rank() == 1) {
      p.expose({.name = "x", .bytes = 64}, p.memory(4096, Others::OnlyRead), 0);
      p.meet();
      p.leave();
      return;
    }
    if (p.rank() == 0) {
      const OpenedPtr x = p.open("x", 1);
      p.meet();
      Status status;
      uint64_t word = 0;
      while (status.ok()) status = p.wait(p.remote().read(x, 0, &word, 8, kSoonMs));
      EXPECT_TRUE(status.code() == StatusCode::PeerFailed || status.code() == StatusCode::Aborted)
          << status.message();
      return;
    }
    p.meet();
  });
}

// Its number stays, and who waits for a larger one waits on.
TEST_P(RemoteTest, TheEndOfANotifierIsNoEndOfWhatItHasNotified) {
  run(3, [](RemoteProcess& p) {
    if (p.rank() == 1) {
      p.expose({.name = "x", .bytes = 64, .is_writable = true}, p.memory(4096, Others::Write), 0);
      const WorkPtr wait = p.remote().wait_notified("x", 8, kSoonMs).take();
      p.good(p.remote().wait_notified("x", 7, kSoonMs).take());
      p.meet();
      while (p.remote().stats().openings > 1) std::this_thread::yield();
      EXPECT_EQ(p.remote().notified("x").value(), 7u);
      EXPECT_FALSE(wait->done());
      p.meet();
      p.good(wait);
      p.meet();
      return;
    }
    const OpenedPtr x = p.open("x", 1);
    const uint64_t word = 5;
    if (p.rank() == 0) {
      p.good(p.remote().write(x, 0, &word, 8, 7, kSoonMs));
      p.good(p.remote().fence(x, kSoonMs));
      p.meet();
      p.leave_all();
      return;
    }
    p.meet();
    p.meet();
    p.good(p.remote().write(x, 8, &word, 8, 8, kSoonMs));
    p.meet();
  });
}

TEST_P(RemoteTest, ASessionThatNobodyUsesIsClosedAndBegunAnew) {
  run(2, [](RemoteProcess& p) {
    const auto until = [&](uint64_t sessions) {
      for (int i = 0; i < 1200 && p.remote().stats().sessions != sessions; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      EXPECT_EQ(p.remote().stats().sessions, sessions);
    };
    RemoteMemoryPtr memory;
    if (p.rank() == 1) {
      memory = p.memory(4096, Others::Write);
      std::memset(memory->data(), 7, memory->bytes());
      p.expose({.name = "x", .bytes = 64, .is_writable = true}, memory, 0);
    }
    for (int time = 0; time < 2; ++time) {
      if (p.rank() == 0) {
        const OpenedPtr x = p.open("x", 1);
        std::byte got{};
        p.good(p.remote().read(x, 5, &got, 1, kSoonMs));
        EXPECT_EQ(got, std::byte{7});
        until(1);
        p.remote().close(x);
      }
      p.meet();
      if (time == 0) {
        until(0);
        const auto sessions = p.recorder().snapshot().sessions;
        const auto closed = std::ranges::find(sessions, true, &FlightSession::has_ended);
        EXPECT_TRUE(closed != sessions.end() && closed->failure.empty());
      }
      p.meet();
    }
  });
}

OwnedTransports shm(const Clock& clock) {
  return only(ShmTransport::open(Config{}, clock, ThisProcess::make().take()));
}

OwnedTransports tcp(const Clock& clock) {
  return only(TcpTransport::open(Config{}, clock, ThisProcess::make().take()));
}

INSTANTIATE_TEST_SUITE_P(Sockets, RemoteTest,
                         testing::Values(RemoteKind{"shm", true, shm},
                                         RemoteKind{"tcp", false, tcp}),
                         name_of);

}  // namespace
}  // namespace rdmacoll::remote_test
