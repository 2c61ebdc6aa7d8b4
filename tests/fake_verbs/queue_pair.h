// QueuePair: its queues, the work requests in them, and what is left of each of those to do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "csrc/transport/verbs/abi/verbs.h"

namespace rdmacoll::fake {

struct AddressHandle;
struct QueuePair;

struct Receive {
  uint64_t id = 0;
  std::vector<ibv_sge> pieces;
};

// Some bytes of a message: fetched from their source, they are on the wire; then they are stored at
// their destination.
struct Piece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::vector<std::byte> data;
};

// A work request of a send queue.
struct Message {
  uint64_t id = 0;
  ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
  unsigned flags = 0;
  uint32_t immediate = 0;
  uint64_t bytes = 0;
  std::vector<ibv_sge> local;
  std::vector<std::byte> inline_data;  // where IBV_SEND_INLINE is set
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  AddressHandle* to = nullptr;  // datagrams: to, number, key
  uint32_t number = 0;
  uint32_t key = 0;
  uint64_t position = 0;  // in the send queue, counted from 1

  // Of those that have begun:
  QueuePair* at = nullptr;  // the other side
  std::vector<Piece> unsent;
  std::vector<Piece> on_the_wire;
  std::optional<Receive> receive;  // that it takes at the other side
  bool acknowledged = false;
  bool delivered = false;

  bool is_read() const { return opcode == IBV_WR_RDMA_READ; }
  bool is_inline() const { return (flags & IBV_SEND_INLINE) != 0; }
  bool takes_receive() const { return opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }
  bool sent() const { return unsent.empty(); }
  bool landed() const { return unsent.empty() && on_the_wire.empty(); }
};

struct QueuePair : ibv_qp {
  ibv_qp_cap cap{};
  bool signal_all = false;

  // Posting: strict places. A request is in its queue until its completion, or that of a later one
  // on the same queue, was taken from the completion queue.
  std::mutex post_mutex;
  uint64_t sends_posted = 0;
  uint64_t receives_posted = 0;
  std::atomic<uint64_t> sends_taken{0};
  std::atomic<uint64_t> receives_taken{0};
  std::atomic<ibv_qp_state> current{IBV_QPS_RESET};
  std::atomic<bool> destroyed{false};
  std::atomic<bool> killed{false};

  // Under the network's lock.
  ibv_qp_attr attributes{};   // as modified
  std::deque<Message> sends;  // the first `begun` of them have begun
  size_t begun = 0;
  std::deque<Receive> receives;
  uint64_t stalled_until = 0;  // of the network's moves
  std::chrono::steady_clock::time_point again_at{};
  bool busy = false;  // among those that take turns
  std::optional<int> retries_left;
  std::optional<int> not_ready_left;

  bool lives() const { return !destroyed && !killed; }
  bool receiving() const { return lives() && (current == IBV_QPS_RTR || current == IBV_QPS_RTS); }
};

}  // namespace rdmacoll::fake
