// PlanBuilder: writes a plan as a paragraph of copies and reductions. The waits and signals follow
// from the operands, in the order that plan.h promises, so that an algorithm cannot forget one.
// Floor: plan. Thread: a local value of the function that makes the plan.
#pragma once

#include <optional>
#include <vector>

#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

inline BlockRange block(uint32_t index) { return {static_cast<uint16_t>(index), 1}; }
inline BlockRange blocks(uint32_t first, uint32_t count) {
  return {static_cast<uint16_t>(first), static_cast<uint16_t>(count)};
}
inline constexpr BlockRange kToken{0, 0};

inline Operand input(BlockRange blocks) { return {Buffer::Input, 0, 0, blocks}; }
inline Operand output(BlockRange blocks) { return {Buffer::Output, 0, 0, blocks}; }
inline Operand slot(uint16_t from, BlockRange blocks, uint8_t channel = 0) {
  return {Buffer::Slot, channel, from, blocks};
}
inline Operand peer_slot(uint16_t to, BlockRange blocks, uint8_t channel = 0) {
  return {Buffer::PeerSlot, channel, to, blocks};
}
// Of a message that several steps fill or read, where it holds more than these blocks.
inline Operand part_of(BlockRange message, Operand operand) {
  if (!(message == operand.blocks)) operand.message = message;
  return operand;
}
// A whole one, for messages that may be placed directly (plan.h, "Direct placement").
inline Operand placed(uint16_t from, BlockRange blocks) {
  return {Buffer::Slot, kOrderedChannel, from, blocks, false, true};
}
inline Operand peer_output(uint16_t to, BlockRange blocks) {
  return {Buffer::PeerSlot, kOrderedChannel, to, blocks, false, true};
}
inline Operand stage(BlockRange blocks, uint8_t channel = kFirstStageChannel) {
  return {Buffer::Stage, channel, 0, blocks};
}
inline Operand peer_stage(uint16_t of, BlockRange blocks, uint8_t channel = kFirstStageChannel) {
  return {Buffer::PeerStage, channel, of, blocks, false, false, blocks.first};
}
// The same of a message whose source begins with another block than is read.
inline Operand part_of_stage(uint16_t of, BlockRange blocks, uint8_t channel, uint16_t first) {
  return {Buffer::PeerStage, channel, of, blocks, false, false, first};
}

using Operands = std::vector<Operand>;

// rank + distance around the circle; distance may be negative.
inline uint16_t around(int rank, int distance, int world) {
  return static_cast<uint16_t>(((rank + distance) % world + world) % world);
}
// rank + 1, rank + 2, ...: everybody starts with somebody else, so that nobody is hit by all.
std::vector<uint16_t> others_from(uint16_t rank, uint16_t world);

class PlanBuilder {
 public:
  PlanBuilder(Collective collective, Algorithm algorithm, uint16_t rank, uint16_t world,
              uint32_t blocks);
  // Of several islands: the stages are read by the rank's own alone.
  PlanBuilder(Collective collective, Algorithm algorithm, uint16_t rank, const Islands& islands,
              uint32_t blocks);

  // Those that read this rank's stages, and whose stages it reads: rank + 1, rank + 2, ...
  const std::vector<uint16_t>& others() const { return others_; }

  // What follows is in a new lane. A lane that stays empty is none.
  void lane();

  // One step that is the whole of every message it takes and makes: it waits for its slots and
  // peers' stages and for room where it sends; afterwards it announces what it wrote and returns
  // the credit of what it read. The first source names the blocks.
  void copy(Operand source, const Operands& destinations);
  // A partial result; of one source it is a copy.
  void reduce(const Operands& sources, const Operands& destinations);
  void finish(const Operands& sources, const Operands& destinations);  // every contribution

  // The parts, for messages that several steps fill or read. The `source` of a Data signal is
  // what the peer reads of the message; every copy of it into the message must come from there.
  void wait(Counter counter, uint16_t peer, uint8_t channel, BlockRange blocks);
  void signal(Counter counter, uint16_t peer, uint8_t channel, BlockRange blocks);
  void signal_data(uint16_t peer, uint8_t channel, BlockRange blocks, Operand source);
  void bare_copy(Operand source, const Operands& destinations);
  void bare_reduce(const Operands& sources, const Operands& destinations);
  void bare_finish(const Operands& sources, const Operands& destinations);

  // Waits for the stages of these peers. Until they are released, steps read parts of them, and
  // neither wait for nor return them.
  void hold_stages(const std::vector<uint16_t>& peers, uint8_t channel, BlockRange message);
  void release_stages(const std::vector<uint16_t>& peers, uint8_t channel, BlockRange message);

  // For plans that may write a user buffer before a peer has read what was sent from it: from here
  // on no message is zero-copy.
  void forbid_zero_copy() { zero_copy_ = false; }
  void allow_zero_copy() { zero_copy_ = true; }

  // Blocks are numbered island by island.
  void number_blocks_by(const Islands& islands);

  // For plans in which one rank uses slots or stages and another does not, or whose stages hold
  // groups of blocks (Plan::stage_blocks): all must cut alike.
  void cut_alike(uint32_t slot_blocks, uint32_t stage_blocks);

  Plan take();

 private:
  void mark_placed(const Operand& operand) { plan_.steps.back().placed = operand.placed; }
  void whole(Step step, const Operands& sources, const Operands& destinations);
  std::optional<Operand> bare(Step step, const Operands& sources, const Operands& destinations);
  void add_operand(const Operand& operand);
  void add_step(const Step& step);
  void note_peers();
  bool is_received(const Operand& operand) const;

  Plan plan_;
  std::vector<uint16_t> others_;
  uint8_t held_channel_ = 0;  // a stage channel, while its messages are held
  bool zero_copy_ = true;
};

}  // namespace rdmacoll
