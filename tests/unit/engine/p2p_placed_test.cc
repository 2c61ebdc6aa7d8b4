// Messages that go from tensor to tensor, over tcp, which reads and writes any memory: their last
// bytes travel in a line where they fit.
#include "tests/unit/engine/messages.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll {
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

}  // namespace
}  // namespace rdmacoll
