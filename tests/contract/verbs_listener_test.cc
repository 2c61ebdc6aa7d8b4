// The listener under an endless flood of datagrams: it still ends when it is told to.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "csrc/transport/verbs/connection/listener.h"
#include "tests/contract/verbs_pair.h"

namespace rdmacoll::verbs_listener_test {
namespace {

std::atomic<uint64_t> taken{0};

// A completion queue that always has one more datagram.
int always_one(ibv_cq*, int, ibv_wc* completion) {
  *completion = {};
  completion->status = IBV_WC_SUCCESS;
  completion->byte_len = 100;
  ++taken;
  return 1;
}

int nothing_posted(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) { return 0; }

TEST(VerbsListener, AFloodOfDatagramsDoesNotKeepItFromItsEnd) {
  fake::FakeNetwork network(two_devices(1));
  VerbsTable table = fake::FakeNetwork::table();
  const auto device = Device::open(table, on_device(0)).take();
  table.poll_cq = always_one;
  table.post_recv = nothing_posted;
  auto listener = verbs::ConnectionListener::open(table, *device).take();
  const Status started = listener->start(
      {[](const std::byte*, size_t) {}, [](const ibv_async_event&) {}, [](const Status&) {}});
  ASSERT_TRUE(started.ok()) << started.message();
  while (taken < 10'000) std::this_thread::yield();
  listener.reset();  // waits for its thread
}

}  // namespace
}  // namespace rdmacoll::verbs_listener_test
