// Words of remote memory that processes, which are threads here, update in one step.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/remote/remote.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll::updates_test {
namespace {

constexpr uint64_t kBytes = 64;

// Of the owner, at an offset that is aligned in its memory.
RemoteMemoryPtr expose_words(RemoteProcess& p, const std::string& name, uint64_t offset) {
  const auto memory = p.memory(4096, Others::Write);
  p.expose({.name = name, .bytes = kBytes, .is_writable = true}, memory, offset);
  return memory;
}

TEST_P(RemoteTest, NoUpdateIsLost) {
  constexpr uint32_t kProcesses = 4;
  constexpr uint64_t kAdds = 100;
  std::mutex mutex;
  std::vector<uint64_t> numbers;
  run(kProcesses, [&](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "counter", 8);
      p.meet();
      std::sort(numbers.begin(), numbers.end());
      ASSERT_EQ(numbers.size(), (kProcesses - 1) * kAdds);
      for (uint64_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], i);
      EXPECT_EQ(*reinterpret_cast<const uint64_t*>(memory->data() + 24), numbers.size());
      return;
    }
    const OpenedPtr counter = p.open("counter", 0);
    std::vector<WorkPtr> works;
    std::vector<std::shared_ptr<uint64_t>> before;
    for (uint64_t i = 0; i < kAdds; ++i) {
      before.push_back(std::make_shared<uint64_t>(0));
      works.push_back(p.remote().update(counter, 16, Update::add(1), before.back(), kSoonMs));
    }
    for (uint64_t i = 0; i < works.size(); ++i) {
      p.good(works[i]);
      const std::lock_guard lock(mutex);
      numbers.push_back(*before[i]);
    }
    p.meet();
  });
}

TEST_P(RemoteTest, AnUpdateOfWhatIsNoWordToWriteIsRefused) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto words = expose_words(p, "words", 8);
      const auto odd = expose_words(p, "odd", 12);
      const auto read_only = p.memory(4096, Others::OnlyRead);
      p.expose({.name = "for reading", .bytes = kBytes}, read_only, 0);
      p.meet();
      for (const auto& memory : {words, odd, read_only}) {
        EXPECT_TRUE(std::all_of(memory->data(), memory->data() + memory->bytes(),
                                [](std::byte one) { return one == std::byte{0}; }));
      }
      return;
    }
    const auto refused = [&](const OpenedPtr& opened, uint64_t offset, const std::string& words) {
      const auto before = std::make_shared<uint64_t>(0);
      const Status status =
          p.wait(p.remote().update(opened, offset, Update::add(1), before, kSoonMs));
      EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
      EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    };
    const OpenedPtr words = p.open("words", 0);
    refused(words, kBytes, "8 bytes from byte 64 on are not in 'words', which has 64");
    refused(words, kBytes - 7, "8 bytes from byte 57 on are not in 'words'");
    refused(words, 4, "byte 4 of 'words' is not aligned to eight bytes");
    refused(p.open("odd", 0), 8, "byte 8 of 'odd' is not aligned to eight bytes");
    refused(p.open("for reading", 0), 0, "'for reading' of rank 0 is for reading");
    p.meet();
  });
}

TEST_P(RemoteTest, AWordOfLentMemoryIsUpdated) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      p.remote().lend(4096);
      return p.meet();
    }
    auto made = p.remote().allocate_there(p.address(0), "rank 0", 64, kSoonMs, {});
    ASSERT_TRUE(made.ok()) << made.status().message();
    const auto update = [&](const Update& one) {
      const auto before = std::make_shared<uint64_t>(99);
      p.good(p.remote().update(made.value(), 56, one, before, kSoonMs));
      return *before;
    };
    EXPECT_EQ(update(Update::add(~uint64_t{0})), 0u);
    EXPECT_EQ(update(Update::compare_swap(~uint64_t{0}, 7)), ~uint64_t{0});
    EXPECT_EQ(update(Update::compare_swap(~uint64_t{0}, 8)), 7u);
    uint64_t word = 0;
    p.good(p.remote().read(made.value(), 56, &word, 8, kSoonMs));
    EXPECT_EQ(word, 7u);
    p.meet();
  });
}

TEST_P(RemoteTest, AnUpdateOfWhatIsRevokedIsNotMade) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "words", 0);
      p.meet();
      ASSERT_TRUE(p.remote().revoke("words", kSoonMs, {}).ok());
      EXPECT_EQ(*reinterpret_cast<const uint64_t*>(memory->data()), 1u);
      return p.meet();
    }
    const OpenedPtr words = p.open("words", 0);
    const auto update = [&] {
      const auto before = std::make_shared<uint64_t>(0);
      return p.wait(p.remote().update(words, 0, Update::add(1), before, kSoonMs));
    };
    EXPECT_TRUE(update().ok());
    p.meet();
    p.meet();
    const Status revoked = update();
    EXPECT_EQ(revoked.code(), StatusCode::Aborted);
    EXPECT_NE(revoked.message().find("rank 0 has taken 'words' back"), std::string::npos);
  });
}

TEST_P(RemoteTest, AnUpdateIsNotedAsOne) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "words", 0);
      return p.meet();
    }
    const OpenedPtr words = p.open("words", 0);
    const auto before = std::make_shared<uint64_t>(0);
    p.good(p.remote().update(words, 0, Update::add(1), before, kSoonMs));
    const FlightSnapshot seen = p.recorder().snapshot();
    const auto is_update = [](const FlightRecord& record) {
      return record.kind == static_cast<uint8_t>(FlightKind::Update);
    };
    ASSERT_EQ(std::ranges::count_if(seen.records, is_update), 1);
    const FlightRecord& noted = *std::ranges::find_if(seen.records, is_update);
    EXPECT_EQ(noted.bytes, kWordBytes);
    EXPECT_EQ(noted.state, FlightState::Done);
    EXPECT_LE(noted.started_ns, noted.ended_ns);
    p.meet();
  });
}

TEST_P(RemoteTest, AnUpdateOfWhoIsGoneFails) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "words", 0);
      p.meet();
      return p.leave();
    }
    const OpenedPtr words = p.open("words", 0);
    p.meet();
    Status status;
    while (status.ok()) {
      const auto before = std::make_shared<uint64_t>(0);
      status = p.wait(p.remote().update(words, 0, Update::compare_swap(0, 0), before, kSoonMs));
      EXPECT_TRUE(!status.ok() || *before == 0);
    }
    EXPECT_TRUE(status.code() == StatusCode::PeerFailed || status.code() == StatusCode::Aborted)
        << status.message();
  });
}

}  // namespace
}  // namespace rdmacoll::updates_test
