// Memory that a process gives to one other: what that allocates, what is posted to it; and how one
// is cut off that does not give it back.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "csrc/engine/session/read_write.h"
#include "csrc/remote/fields.h"
#include "csrc/remote/remote.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll::given_test {
namespace {

constexpr int64_t kShortMs = 500;

// Waits until it is true, which others make it.
bool soon(const std::function<bool()>& is_true) {
  for (int64_t ms = 0; ms < kSoonMs; ++ms) {
    if (is_true()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST_P(RemoteTest, AllocatesWhatAnotherLends) {
  constexpr uint64_t kBytes = 600'000;
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 1) {
      p.remote().lend(1'000'000);
      p.meet();
      EXPECT_EQ(p.remote().stats().lent_bytes, kBytes);
      p.meet();
      p.meet();
      EXPECT_TRUE(soon([&] { return p.remote().stats().lent_bytes == 0; }));
      EXPECT_TRUE(soon([&] { return p.remote().stats().memory_bytes == 0; }));
      p.meet();
      p.meet();
      return;
    }
    const auto allocate = [&](uint64_t bytes, int64_t timeout_ms) {
      return p.remote().allocate_there(p.address(1), "rank 1", bytes, timeout_ms, {});
    };
    auto made = allocate(kBytes, kSoonMs);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const OpenedPtr there = made.take();
    std::vector<uint8_t> out(kBytes, 7), in(kBytes, 1);
    p.good(p.remote().read(there, 0, in.data(), kBytes, kSoonMs));
    EXPECT_TRUE(std::ranges::all_of(in, [](uint8_t byte) { return byte == 0; }));
    p.good(p.remote().write(there, 0, out.data(), kBytes, 0, kSoonMs));
    p.good(p.remote().read(there, 0, in.data(), kBytes, kSoonMs));
    EXPECT_EQ(in, out);
    const auto too_much = allocate(kBytes, kSoonMs);
    EXPECT_EQ(too_much.status().code(), StatusCode::System);
    EXPECT_NE(too_much.status().message().find("rank 1: of the 1000000 bytes that it lends, others "
                                               "have 600000; 600000 more are not there"),
              std::string::npos)
        << too_much.status().message();
    p.meet();
    p.meet();
    p.remote().close(there);
    p.meet();
    p.meet();
    auto again = allocate(1'000'000, kSoonMs);
    ASSERT_TRUE(again.ok()) << again.status().message();
    p.remote().close(again.value());
    p.meet();
  });
}

TEST_P(RemoteTest, WhatWasLentToOneThatEndsComesBack) {
  run(3, [&](RemoteProcess& p) {
    if (p.rank() == 0) {
      p.remote().lend(1 << 20);
      p.meet();
      EXPECT_TRUE(soon([&] { return p.remote().stats().lent_bytes == 0; }));
      return;
    }
    if (p.rank() == 2) return p.meet();
    const auto made = p.remote().allocate_there(p.address(0), "rank 0", 4096, kSoonMs, {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    p.meet();
    p.leave();
  });
}

TEST_P(RemoteTest, NobodyAllocatesWhereNothingIsLent) {
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 1) return p.meet();
    const auto none = p.remote().allocate_there(p.address(1), "rank 1", 8, kShortMs, {});
    EXPECT_EQ(none.status().code(), StatusCode::Timeout);
    EXPECT_NE(none.status().message().find("rank 1 has lent no memory within 500 ms"),
              std::string::npos);
    p.meet();
  });
}

TEST_P(RemoteTest, LettersComeInTheirOrder) {
  constexpr uint64_t kLetters = 40;
  run(3, [&](RemoteProcess& p) {
    if (p.rank() == 0) {
      ASSERT_TRUE(p.remote().open_mailbox("box").ok());
      EXPECT_EQ(p.remote().open_mailbox("box").code(), StatusCode::InvalidArgument);
      std::vector<uint64_t> next(3, 1);
      for (uint64_t i = 0; i < 2 * kLetters; ++i) {
        auto taken = p.remote().take("box", kSoonMs, {});
        ASSERT_TRUE(taken.ok()) << taken.status().message();
        std::vector<uint64_t> words(taken.value()->info.bytes / 8);
        p.good(p.remote().read(taken.value(), 0, words.data(), 8 * words.size(), kSoonMs));
        const uint64_t from = std::stoull(taken.value()->info.meta);
        ASSERT_EQ(words.size(), 1000 * from + next[from]);
        EXPECT_TRUE(std::ranges::all_of(words, [&](uint64_t w) { return w == next[from]; }));
        ++next[from];
        p.remote().close(taken.value());
      }
      EXPECT_EQ(p.remote().take("box", kShortMs, {}).status().code(), StatusCode::Timeout);
      p.meet();
      return;
    }
    const auto memory = p.memory(8 * (1000 * 2 + kLetters), Others::OnlyRead);
    auto* const words = reinterpret_cast<uint64_t*>(memory->data());
    for (uint64_t i = 1; i <= kLetters; ++i) {
      const uint64_t count = 1000 * static_cast<uint64_t>(p.rank()) + i;
      std::fill_n(words, count, i);
      auto work = p.remote().post(p.address(0), "rank 0", "box",
                                  {memory, 0, 8 * count, std::to_string(p.rank())}, kSoonMs, {});
      ASSERT_TRUE(work.ok()) << work.status().message();
      p.good(work.value());  // from here on it may be changed
    }
    EXPECT_EQ(p.remote().stats().posted, 0u);
    p.meet();
  });
}

// Its memory cannot be opened before the sender offers it, which over verbs nobody has to; and one
// with a key that opens nothing is in nobody's way.
TEST_P(RemoteTest, ALetterStaysUntilItCanBeRead) {
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 0) {
      ASSERT_TRUE(p.remote().open_mailbox("box").ok());
      p.meet();
      p.meet();
      EXPECT_FALSE(p.remote().take("box", kSoonMs, {}).ok()) << "its key is none";
      auto taken = p.remote().take("box", kShortMs, {});
      const bool needs_offer = !taken.ok();
      if (needs_offer) {
        EXPECT_EQ(taken.status().code(), StatusCode::Timeout) << taken.status().message();
      }
      p.meet();
      if (needs_offer) taken = p.remote().take("box", kSoonMs, {});
      ASSERT_TRUE(taken.ok()) << taken.status().message();
      EXPECT_EQ(taken.value()->info.meta, "second");
      p.remote().close(taken.value());
      p.meet();
      return;
    }
    p.meet();
    const SessionPtr session = p.session_with(0);
    auto region = p.transports().create_region(4096);
    ASSERT_TRUE(region.ok());
    Path path;
    path.transport = session->link().transport;
    path.peer = session->link().peer;
    auto key = p.transports().key_over(path, p.transports().region_key(region.value().id));
    ASSERT_TRUE(key.ok());
    const auto post = [&](const char* number, const char* meta, const std::string& with_key) {
      auto letter = std::make_shared<Request>();
      letter->work = std::make_shared<Work>();
      letter->text = encode({{fields::kDo, fields::kPost},
                             {fields::kName, "box"},
                             {fields::kNumber, number},
                             {fields::kKey, with_key},
                             {fields::kOffset, "0"},
                             {fields::kBytes, "8"},
                             {fields::kMeta, meta}});
      letter->deadline_ns = p.sessions().now_ns() + kSoonMs * 1'000'000;
      ASSERT_TRUE(p.sessions().submit(*session, letter).ok());
      p.good(letter->work);
      EXPECT_EQ(letter->reply, "");
    };
    post("1", "first", "no key");
    post("2", "second", key.value());
    p.meet();
    p.meet();
    EXPECT_TRUE(p.transports().offer_region(path, region.value().id, kNoNote).ok());
    p.meet();
    p.transports().release_region(region.value().id, Release::Withdraw);
  });
}

TEST_P(RemoteTest, SaysWhyALetterWasNotTaken) {
  run(3, [&](RemoteProcess& p) {
    if (p.rank() == 0) {
      p.meet();
      ASSERT_TRUE(p.remote().open_mailbox("box").ok());
      p.meet();
      ASSERT_TRUE(p.remote().close_mailbox("box").ok());
      EXPECT_EQ(p.remote().close_mailbox("box").code(), StatusCode::InvalidArgument);
      EXPECT_EQ(p.remote().take("box", 0, {}).status().code(), StatusCode::InvalidArgument);
      p.meet();
      ASSERT_TRUE(p.remote().open_mailbox("box").ok());
      p.meet();
      return p.leave();
    }
    const auto memory = p.memory(4096, Others::OnlyRead);
    const auto post = [&](int64_t timeout_ms) {
      return p.remote().post(p.address(0), "rank 0", "box", {memory, 0, 8, ""}, timeout_ms, {});
    };
    const auto nowhere = post(kShortMs);
    EXPECT_EQ(nowhere.status().code(), StatusCode::Timeout);
    EXPECT_NE(nowhere.status().message().find("rank 0 has no such mailbox: 'box', after 500 ms"),
              std::string::npos)
        << nowhere.status().message();
    p.meet();
    auto refused = post(kSoonMs);
    ASSERT_TRUE(refused.ok()) << refused.status().message();
    auto late = post(kShortMs);
    ASSERT_TRUE(late.ok()) << late.status().message();
    EXPECT_EQ(p.wait(late.value()).code(), StatusCode::Timeout);
    p.meet();
    EXPECT_EQ(p.wait(refused.value()).code(), StatusCode::Aborted);
    p.meet();
    auto lost = post(kSoonMs);
    ASSERT_TRUE(lost.ok()) << lost.status().message();
    p.meet();
    EXPECT_EQ(p.wait(lost.value()).code(), StatusCode::PeerFailed);
    EXPECT_TRUE(soon([&] { return p.remote().stats().posted == 0; }));
  });
}

// Rank 0 holds on to what was revoked as one would that was stopped within a write, and writes
// when the owner has its memory back.
TEST_P(RemoteTest, WhoDoesNotStopIsCutOff) {
  constexpr uint64_t kBytes = 3'000'000;
  run(3, [&](RemoteProcess& p) {
    if (p.rank() == 1) {
      const auto memory = p.memory(kBytes, Others::Write);
      p.expose({.name = "x", .bytes = kBytes, .is_writable = true}, memory, 0);
      p.expose({.name = "beside", .bytes = 8, .is_writable = true}, memory, 4096);
      p.meet();
      std::fill_n(memory->data(), kBytes, std::byte{1});
      std::byte* const data = memory->data();
      auto cut_off = p.remote().revoke("x", kShortMs, {});
      ASSERT_TRUE(cut_off.ok()) << cut_off.status().message();
      ASSERT_EQ(cut_off.value().size(), 1u);
      EXPECT_TRUE(cut_off.value()[0].starts_with("process ")) << cut_off.value()[0];
      EXPECT_EQ(memory->data(), data);
      p.meet();
      p.meet();
      EXPECT_TRUE(std::all_of(data, data + kBytes, [](std::byte b) { return b == std::byte{1}; }));
      p.expose({.name = "x", .bytes = kBytes, .is_writable = true}, memory, 0);
      p.meet();
      p.meet();
      EXPECT_EQ(data[5], std::byte{9});
      return;
    }
    const OpenedPtr x = p.open(p.rank() == 0 ? "x" : "beside", 1);
    std::vector<std::byte> late(kBytes, std::byte{2});
    if (p.rank() == 2) {
      p.meet();
      p.meet();
      // It has done nothing wrong, and opens it anew.
      const Status stopped = p.wait(p.remote().read(x, 0, late.data(), 8, kSoonMs));
      EXPECT_EQ(stopped.code(), StatusCode::Aborted) << stopped.message();
      const OpenedPtr anew = p.open("beside", 1);
      p.good(p.remote().read(anew, 0, late.data(), 8, kSoonMs));
      EXPECT_EQ(late[0], std::byte{1});
      p.meet();
      p.meet();
      const OpenedPtr again = p.open("x", 1);
      late[0] = std::byte{9};
      p.good(p.remote().write(again, 5, late.data(), 1, 0, kSoonMs));
      p.good(p.remote().fence(again, kSoonMs));
      return p.meet();
    }
    const auto use = x->use();
    p.meet();
    p.meet();
    EXPECT_TRUE(x->is_revoked());
    // Inside a host threads have the owner's own mapping; test_remote_given.py has processes.
    if (GetParam().one_host) {
      p.meet();
      p.meet();
      return p.meet();
    }
    auto write = std::make_unique<Write>(LocalSlice{late.data(), kBytes, kNoRegion},
                                         use->memory->region, 0, Write::Notification{});
    const auto work = write->work = std::make_shared<Work>();
    write->deadline_ns = p.sessions().now_ns() + kSoonMs * 1'000'000;
    static_cast<void>(p.sessions().submit(*x->session, std::move(write)));
    static_cast<void>(p.wait(work));  // well where nobody sees it, or refused
    p.meet();
    p.meet();
    p.meet();
  });
}

}  // namespace
}  // namespace rdmacoll::given_test
