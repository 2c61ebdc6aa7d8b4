// Messages that are in no slot, or in none of the sender's: from tensor to tensor over tcp, which
// reads and writes any memory, and out of the sender's heap. Their last bytes travel in a line
// where they fit.
#include "tests/unit/engine/in_heap.h"
#include "tests/unit/engine/messages.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::p2p_placed_test {
namespace {

constexpr uint64_t kChunkBytes = 4u << 20;      // p2p_data.cc
constexpr int kMessages = 2 * int{kSlotDepth};  // for the last ones there are no slots

// All are on their way before the first is received, and that is the one that was sent last.
void exchange(Communicator& c, uint64_t bytes, int messages) {
  std::vector<std::vector<uint8_t>> all;
  std::vector<WorkPtr> works;
  for (int i = 0; i < messages; ++i) {
    all.push_back(c.rank() == 0 ? message(i, bytes) : std::vector<uint8_t>(bytes));
    if (c.rank() == 0) works.push_back(started(c.send({all.back().data(), bytes}, 1, i)));
  }
  finish(c, c.barrier());
  for (int i = messages - 1; i >= 0 && c.rank() == 1; --i) {
    works.push_back(started(c.recv({all[static_cast<size_t>(i)].data(), bytes}, 0, i)));
  }
  for (const WorkPtr& work : works) finish(c, work);
  for (int i = 0; i < messages; ++i) {
    ASSERT_TRUE(all[static_cast<size_t>(i)] == message(i, bytes)) << i << ", of " << bytes;
  }
}

TEST(PlacedMessages, TheLastBytesMayBeInALine) {
  Config config;
  config.transport = "tcp";
  config.log_level = LogLevel::Error;
  config.settings.set("RDMACOLL_SOCKET_IFNAME", "=lo");
  WorldOfThreads(2, config).run([](Communicator& c) {
    for (uint64_t bytes = 0; bytes <= 2 * kInlineBytes; ++bytes) exchange(c, bytes, kMessages);
    for (const uint64_t more : {uint64_t{0}, uint64_t{1}, kInlineBytes, kInlineBytes + 1}) {
      exchange(c, kChunkBytes + more, 2);
      exchange(c, 2 * kChunkBytes + more, 2);
    }
  });
}

// A rank writes into its tensors as soon as their sends have ended.
TEST(HeapMessages, MayBeWrittenOnceTheyAreSent) {
  constexpr uint64_t kMost = 3u << 20;
  Config config = config_of_environment();
  config.log_level = LogLevel::Error;
  config.zero_copy_local_bytes = config.zero_copy_remote_bytes = 1000;
  WorldOfThreads(3, config).run([](Communicator& c) {
    ASSERT_NE(c.heap(), nullptr);
    heap_of_this_rank = c.heap();
    const int right = (c.rank() + 1) % 3;
    const int left = (c.rank() + 2) % 3;
    HeapVector<uint8_t> own(kMost);
    std::vector<uint8_t> got(kMost);
    int tag = 0;
    for (const uint64_t bytes : {uint64_t{999}, uint64_t{100'000}, uint64_t{1 << 20},
                                 (uint64_t{1} << 20) + kInlineBytes, kMost}) {
      for (int i = 0; i < 4; ++i, ++tag) {
        const std::vector<uint8_t> mine = message(tag + 100 * c.rank(), bytes);
        std::copy(mine.begin(), mine.end(), own.begin());
        const WorkPtr received = started(c.recv({got.data(), bytes}, left, tag));
        finish(c, started(c.send({own.data(), bytes}, right, tag)));
        std::fill(own.begin(), own.end(), uint8_t{255});
        finish(c, received);
        const std::vector<uint8_t> expected = message(tag + 100 * left, bytes);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), got.begin())) << bytes;
      }
    }
    heap_of_this_rank = nullptr;
  });
}

}  // namespace
}  // namespace rdmacoll::p2p_placed_test
