// Executor: runs one operation's plan on this rank, without ever blocking. Where an operand is, how
// a message travels and how far each lane has come are decided here; what to do next is the plan's.
// Floor: engine. Thread: the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/engine/layout.h"
#include "csrc/engine/operation.h"
#include "csrc/engine/port.h"

namespace rdmacoll {

class Executor {
 public:
  // ports[channel][peer]; the entry of the own rank is unused. The block is this rank's own.
  Executor(const Layout& layout, std::byte* my_block, std::vector<Link>& links,
           std::vector<std::vector<Port>>& ports);

  // The operation must outlive its run; one at a time.
  void start(const Operation& operation);
  // One round over the lanes, each at most to the end of its tile; whether anything moved.
  bool advance();
  bool running() const { return lanes_left_ > 0; }
  // Forgets the operation where it stands; the ports are of no use after it.
  void stop() { lanes_left_ = 0; }
  // Ok, or Mismatch: a message that belongs to another operation came in.
  const Status& status() const { return status_; }
  // Whether the operation cannot end without more from this peer than has come.
  bool needs(uint32_t peer) const;
  // Ok, or Mismatch: the peer is in the collective of the same number, but in another one. Seen
  // where its messages come on a channel that this rank's plan does not read.
  Status compare_with(uint32_t peer) const;

 private:
  struct LaneState {
    uint64_t tile = 0;
    uint64_t tiles = 0;
    uint32_t step = 0;
  };

  bool advance_lane(uint32_t lane);
  // `bytes`: of the message that the step waits for or announces.
  bool run(const Step& step, uint64_t tile, uint64_t bytes);
  bool wait(const Step& step, uint64_t bytes);
  bool signal(const Step& step, uint64_t bytes);
  void copy(const Step& step, uint64_t tile);
  void fold(const Step& step, uint64_t tile);
  const std::byte* source(const Operand& operand, const Piece& piece, uint64_t tile) const;
  std::byte* destination(const Operand& operand, const Piece& piece, uint64_t tile);
  uint32_t message_signature(BlockRange range) const;
  uint32_t message_word(uint64_t bytes) const;
  Status mismatch(uint32_t peer) const;
  uint64_t messages_due(uint32_t lane, uint8_t channel, uint32_t peer) const;
  Port& port(uint8_t channel, uint32_t peer) { return ports_[channel][peer]; }
  const Port& port(uint8_t channel, uint32_t peer) const { return ports_[channel][peer]; }

  const Layout& layout_;
  std::byte* my_block_;
  std::vector<Link>& links_;
  std::vector<std::vector<Port>>& ports_;

  const Operation* operation_ = nullptr;
  std::optional<Tiling> tiling_;
  std::vector<LaneState> lanes_;
  uint32_t lanes_left_ = 0;
  std::vector<const void*> sources_;  // of the fold at hand; kept for its capacity
  std::vector<void*> destinations_;
  Status status_;
};

}  // namespace rdmacoll
