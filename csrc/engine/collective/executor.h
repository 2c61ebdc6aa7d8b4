// Executor: runs one operation's plan on this rank, without ever blocking. Where an operand is, how
// a message travels and how far each lane has come are decided here; what to do next is the plan's.
// Floor: engine/collective. Thread: the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/heap.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/engine/channel/port.h"
#include "csrc/engine/channel/store_choice.h"
#include "csrc/engine/collective/direct_placement.h"
#include "csrc/engine/collective/operation.h"

namespace rdmacoll {

// The error for a peer that is in another collective than this rank, which is in that one.
Status mismatch_with(uint32_t peer, const CollectiveCall& mine);

class Executor {
 public:
  // The heap is this rank's own, or nullptr.
  Executor(PeerLinks& links, const Heap* heap, const Config& config, const Clock& clock);

  // Whether this rank has met all peers of the plan.
  bool has_met(const Plan& plan) const;
  // That must be so. The operation must outlive its run; one at a time.
  void start(const Operation& operation);
  // One round over the lanes, each at most to the end of its tile; whether anything moved.
  bool advance();
  bool running() const { return lanes_left_ > 0 || !unsettled_.empty(); }
  // Forgets the operation where it stands; the ports are of no use after it.
  void stop();
  // The peer is gone: what it would read here need not be given back. A put to it still ends.
  void drop_zero_copy(uint32_t peer);
  // Whether the peer may still write into the operation's output: it has leave to, and not all of
  // its messages have come.
  bool may_write_output(uint32_t peer) const;
  // Ok, or Mismatch: a message that belongs to another operation came in.
  const Status& status() const { return status_; }
  // Whether the operation cannot end without more from this peer than has come.
  bool needs(uint32_t peer) const;
  // The same; or all that it still waits for is the end of a put to the peer.
  bool waits_for(uint32_t peer) const;
  // Whether a device still reads, in this rank's memory, what goes to the peer.
  bool is_sending_to(uint32_t peer) const;
  // Ok, or Mismatch: the peer is in the collective of the same number, but in another one. Seen
  // where its messages come on a channel that this rank's plan does not read.
  Status compare_with(uint32_t peer) const;

 private:
  struct LaneState {
    uint64_t tile = 0;
    uint64_t tiles = 0;
    uint32_t step = 0;
  };

  struct ZeroCopy {
    const uint64_t remote_bytes;  // Config's
    bool local = false;           // the operation is large enough for it with mapped peers
    bool remote = false;
  };

  // A channel to a peer with zero-copy messages that are not given back yet, either way.
  struct Unsettled {
    uint8_t channel;
    uint32_t peer;
    bool operator==(const Unsettled&) const = default;
  };

  bool advance_lane(uint32_t lane);
  // `bytes`: of the message that the step waits for or announces.
  bool run(const Step& step, uint64_t tile, uint64_t bytes);
  bool wait(const Step& step, uint64_t bytes);
  bool signal_data(const Step& step, uint64_t tile, uint64_t bytes);
  bool signal_credit(const Step& step, uint64_t bytes);
  void copy(const Step& step, uint64_t tile);
  void fold(const Step& step, uint64_t tile);
  const std::byte* source(const Operand& operand, const Piece& piece, uint64_t tile) const;
  std::byte* destination(const Operand& operand, const Piece& piece, uint64_t tile);
  const std::byte* received(const Operand& operand, const Piece& piece, uint64_t tile) const;
  uint64_t ahead_in_source(const Operand& operand, const Piece& piece, uint64_t tile) const;
  const std::byte* in_input(BlockRange range, const Piece& piece) const;
  std::byte* in_output(BlockRange range, const Piece& piece) const;
  Stores stores_for(const Operand& destination) const;
  // A message of a stage goes to all its readers alike, so what holds for one holds for it.
  uint32_t stage_reader() const { return operation_->plan->stage_reader; }

  // Zero copy (executor_zero_copy.cc).
  void choose_zero_copy(uint64_t operation_bytes);
  bool results_in_heap() const;
  bool has_zero_copy() const { return zero_copy_.local || zero_copy_.remote; }
  bool is_zero_copy(const Step& step, const Operand& destination, uint64_t tile) const;
  std::optional<ZeroCopySource> zero_copy_source(const Operand& operand, uint32_t peer,
                                                 uint64_t tile) const;
  void keep_unsettled(uint8_t channel, uint32_t peer);
  bool is_unsettled_with(uint32_t peer) const;
  bool settle();
  uint32_t length_and_sequence(uint64_t bytes) const;
  uint64_t messages_due(uint32_t lane, uint8_t channel, uint32_t peer) const;
  Port& port(uint8_t channel, uint32_t peer) const { return links_.port(channel, peer); }
  const Link& link(uint32_t peer) const { return links_.at(peer)->link; }

  PeerLinks& links_;
  const Layout& layout_;
  const Heap* heap_;
  StoreChoice store_choice_;
  DirectPlacement placement_;

  const Operation* operation_ = nullptr;
  std::optional<Tiling> tiling_;
  std::vector<LaneState> lanes_;
  uint32_t lanes_left_ = 0;
  Stores to_output_ = Stores::Cached;
  StoreChoice::Use to_peers_;
  ZeroCopy zero_copy_;
  std::vector<Unsettled> unsettled_;
  std::vector<const void*> sources_;  // of the fold at hand; kept for its capacity
  std::vector<void*> destinations_;
  Status status_;
};

}  // namespace rdmacoll
