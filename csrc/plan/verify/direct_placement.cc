// SymbolicWorld: direct placement, as in plan.h. Floor: plan/verify, behind verify.h only.
#include <algorithm>

#include "csrc/plan/verify/shape.h"
#include "csrc/plan/verify/world.h"

namespace rdmacoll {

// Whether the receivers of what the step makes have granted its place. Their grants come when
// they start the operation, and order what they did before.
bool SymbolicWorld::granted(const Step& step) {
  const uint32_t operation = ranks_[at_.rank].operation;
  const auto has_come = [&](uint16_t receiver) {
    if (!grants(receiver)) return true;
    if (ranks_[receiver].operation < operation) return false;
    join(clocks_[me()], seats_[operation][receiver].granted);
    return true;
  };
  if (step.kind == StepKind::Signal) return !step.placed || has_come(step.peer);
  if (step.kind == StepKind::Wait) return true;
  const auto first = plan().operands.begin() + step.first_operand;
  return std::all_of(first, first + step.operands, [&](const Operand& operand) {
    return operand.buffer != Buffer::PeerSlot || !operand.placed || has_come(operand.rank);
  });
}

// The receiver's name of the block that this rank sends: the only one that is placed from here, or
// the same on both ends.
uint16_t SymbolicWorld::placed_block(const Plan& receiver, BlockRange sent) const {
  std::vector<uint16_t> blocks;
  for (const Step& step : receiver.steps) {
    const bool from_me = step.kind == StepKind::Wait && step.counter == Counter::Data &&
                         step.placed && step.peer == at_.rank;
    if (from_me) blocks.push_back(step.blocks.first);
  }
  return blocks.size() == 1 ? blocks.front() : sent.first;
}

SymbolicWorld::Place SymbolicWorld::place_in_output(uint16_t receiver, BlockRange sent,
                                                    uint64_t bytes) {
  const uint32_t operation = ranks_[at_.rank].operation;
  const Plan& its_plan = operations_[operation].plans[receiver];
  const auto& outputs = buffers_[operation][receiver].output;
  const size_t index = is_contiguous(its_plan.collective) ? 0 : placed_block(its_plan, sent);
  if (!outputs[index]) return refused("is placed in a block that the receiver does not have");
  const uint64_t offset = tiling().piece(sent, at_.tile).offset;
  if (offset + bytes > outputs[index]->size()) return refused("is placed past the buffer's end");
  return {outputs[index].get(), offset};
}

// A device moves a zero-copy message into its place, some time before the receiver's wait: written
// from now on, read until then.
void SymbolicWorld::place_zero_copy(const Step& step, OutOfSlot& message) {
  if (!step.placed || !grants(step.peer) || !failure_.empty()) return;
  const uint64_t bytes = tiling().piece(step.blocks, at_.tile).bytes;
  message.output = place_in_output(step.peer, step.blocks, bytes);
  if (message.bytes != 0 && message.bytes != bytes)
    return refuse("places other bytes than its source holds");
  for (uint64_t i = 0; i < message.bytes && failure_.empty(); ++i) {
    write(message.output, i, (*message.source.cells)[message.source.offset + i].value);
  }
}

void SymbolicWorld::read_placed(const OutOfSlot& message) {
  if (message.output.cells == nullptr || message.source.cells == nullptr) return;
  for (uint64_t i = 0; i < message.bytes && failure_.empty(); ++i) read(message.source, i);
}

}  // namespace rdmacoll
