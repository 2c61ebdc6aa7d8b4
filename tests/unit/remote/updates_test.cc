// Words of remote memory that processes, which are threads here, update in one step.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/remote/remote.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll {
namespace {

constexpr uint64_t kBytes = 64;

bool has_updates(const OpenedPtr& opened) {
  return opened->session->link().transport->info().has_updates;
}

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
  bool are_made = true;
  run(kProcesses, [&](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "counter", 8);
      p.meet();
      if (!are_made) return;
      std::sort(numbers.begin(), numbers.end());
      ASSERT_EQ(numbers.size(), (kProcesses - 1) * kAdds);
      for (uint64_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], i);
      EXPECT_EQ(*reinterpret_cast<const uint64_t*>(memory->data() + 24), numbers.size());
      return;
    }
    const OpenedPtr counter = p.open("counter", 0);
    std::vector<WorkPtr> works;
    std::vector<std::shared_ptr<uint64_t>> before;
    if (!has_updates(counter)) {
      const std::lock_guard lock(mutex);
      are_made = false;
    } else {
      for (uint64_t i = 0; i < kAdds; ++i) {
        before.push_back(std::make_shared<uint64_t>(0));
        works.push_back(p.remote().update(counter, 16, Update::add(1), before.back(), kSoonMs));
      }
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

TEST_P(RemoteTest, WhereATransportHasNoUpdatesItIsNamed) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "words", 0);
      return p.meet();
    }
    const OpenedPtr words = p.open("words", 0);
    const auto before = std::make_shared<uint64_t>(9);
    const Status status = p.wait(p.remote().update(words, 0, Update::add(1), before, kSoonMs));
    if (has_updates(words)) {
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(*before, 0u);
    } else {
      EXPECT_EQ(status.code(), StatusCode::Unsupported);
      EXPECT_NE(status.message().find("rank 0 is reached over verbs"), std::string::npos);
    }
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
    if (!has_updates(words)) return;
    EXPECT_TRUE(status.code() == StatusCode::PeerFailed || status.code() == StatusCode::Aborted)
        << status.message();
  });
}

}  // namespace
}  // namespace rdmacoll
