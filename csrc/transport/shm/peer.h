// Peer: what the shm transport keeps of another process.
// Floor: transport/shm. Thread: see each field.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "csrc/base/limits.h"
#include "csrc/base/process_id.h"
#include "csrc/base/published.h"
#include "csrc/base/status.h"
#include "csrc/memory/region.h"
#include "csrc/memory/shared_segment.h"
#include "csrc/memory/unique_fd.h"
#include "csrc/memory/wake_fd.h"
#include "csrc/transport/lease.h"
#include "csrc/transport/shm/address.h"
#include "csrc/transport/shm/peer_socket.h"

namespace rdmacoll {

// What the others see of a process besides its regions; its own shared segment.
struct alignas(kLineBytes) Control {
  std::atomic<uint32_t> asleep;  // a signal must ring
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

struct OpenRegion {
  Region view;  // where it lies in this process
  Generation generation;
  std::shared_ptr<SharedSegment> segment;
};

struct OfferedRegion {
  Generation generation;
  Result<std::shared_ptr<SharedSegment>> memory;
};

// Within one process memory is passed as a pointer to a shared_ptr, which the receiver then owns.
using Reference = std::unique_ptr<std::shared_ptr<SharedSegment>>;

inline Reference take_reference(const Message& message) {
  return Reference(reinterpret_cast<std::shared_ptr<SharedSegment>*>(message.reference));
}

inline Status makes_no_sense(const std::string& peer) {
  return Status(StatusCode::PeerFailed, peer + " sent a set-up message that makes no sense");
}

struct UnsentMessage {
  Message message;
  std::shared_ptr<SharedSegment> memory;  // to pass along; nullptr: none
};

enum class PeerState : uint8_t {
  Alive,
  Gone,    // ended, or said goodbye: it will write no more
  Broken,  // given up although it may live
};

struct Peer {
  // Fixed once published.
  PeerId id = 0;
  ProcessId process{};
  std::string name;           // for messages: pid and host
  bool same_process = false;  // its regions are already in this address space
  SharedSegment control_segment;
  WakeFd wake_fd;

  // The driver reads, set-up writes.
  Published<OpenRegion, kMaxRegions> regions;
  std::atomic<PeerState> state{PeerState::Alive};

  // Under the transport's mutex.
  PeerSocket socket;
  UniqueFd process_fd;
  std::map<RegionId, OfferedRegion> offers;  // not yet opened
  Withdrawals withdrawn;
  std::deque<UnsentMessage> unsent;  // in order; the socket had no room for them

  Peer(SharedSegment control_memory, WakeFd wake, PeerSocket connection)
      : control_segment(std::move(control_memory)),
        wake_fd(std::move(wake)),
        socket(std::move(connection)) {}

  Control& control() const { return *reinterpret_cast<Control*>(control_segment.data()); }
  bool alive() const { return state.load(std::memory_order_acquire) == PeerState::Alive; }
};

}  // namespace rdmacoll
