// SymbolicWorld: where operands lie, and what copies and reductions do to the bytes there.
#include <algorithm>

#include "csrc/plan/builder.h"
#include "csrc/plan/verify/shape.h"
#include "csrc/plan/verify/world.h"

namespace rdmacoll {

void SymbolicWorld::move(const Step& step, uint64_t bytes) {
  places_.clear();
  for (uint32_t i = 0; i < step.operands; ++i) {
    const Operand& operand = plan().operands[step.first_operand + i];
    if (tiling().piece(operand.blocks, at_.tile).bytes != bytes) {
      return refuse("its operands differ in size");
    }
    places_.push_back(place_of(operand, bytes));
    if (!failure_.empty()) return;
    if (operand.zero_copy && sends_zero_copy()) places_.pop_back();
  }
  check_overlap(step, bytes);
  for (uint64_t i = 0; i < bytes && failure_.empty(); ++i) move_byte(step, i);
}

void SymbolicWorld::move_byte(const Step& step, uint64_t i) {
  const size_t source_count = step.operands - step.destinations;
  if (places_.size() == source_count) return;  // every destination stays in its source instead
  sources_.clear();
  for (size_t s = 0; s < source_count; ++s) sources_.push_back(read(places_[s], i));
  if (!failure_.empty()) return;
  Value value = sources_.front();
  if (step.kind == StepKind::Reduce) {
    value = symbols_.fold(sources_);
    if (value == kNothing) return refuse(symbols_.why());
    if (symbols_.complete(value) != step.finishes) {
      return refuse(step.finishes ? "finishes a partial sum" : "completes a sum unmarked");
    }
  }
  for (size_t d = source_count; d < places_.size(); ++d) {
    const bool onto_itself =
        places_[d].cells == places_[0].cells && places_[d].offset == places_[0].offset;
    if (step.kind == StepKind::Copy && onto_itself) continue;
    write(places_[d], i, value);
  }
}

Value SymbolicWorld::read(const Place& place, uint64_t i) {
  Cell& cell = (*place.cells)[place.offset + i];
  const Clock& clock = clocks_[me()];
  if (!cell.may_read(clock)) refuse("reads while another lane writes");
  if (cell.value == kNothing) refuse("reads what nobody wrote");
  return cell.read(me(), clock[me()]);
}

void SymbolicWorld::write(const Place& place, uint64_t i, Value value) {
  Cell& cell = (*place.cells)[place.offset + i];
  const Clock& clock = clocks_[me()];
  if (!cell.may_write(clock)) refuse("writes while another lane reads or writes");
  cell.write(me(), clock[me()], value);
}

SymbolicWorld::Place SymbolicWorld::place_of(const Operand& operand, uint64_t bytes) {
  switch (operand.buffer) {
    case Buffer::Input:
      return user_place(buffers().input, operand, bytes);
    case Buffer::Output:
      return user_place(buffers().output, operand, bytes);
    case Buffer::Slot:
      return slot_place(operand, bytes);
    case Buffer::PeerSlot:
      return peer_slot_place(operand, bytes);
    case Buffer::Stage:
      return stage_place(operand, bytes);
    case Buffer::PeerStage:
      return peer_stage_place(operand, bytes);
  }
  return {};
}

SymbolicWorld::Place SymbolicWorld::user_place(const std::vector<std::shared_ptr<Cells>>& buffers,
                                               const Operand& operand, uint64_t bytes) {
  const size_t index = is_contiguous(plan().collective) ? 0 : operand.blocks.first;
  if (!buffers[index]) return refused("names a block that this rank does not have");
  const Piece piece = tiling().piece(operand.blocks, at_.tile);
  if (piece.offset + bytes > buffers[index]->size()) return refused("goes past the buffer's end");
  return {buffers[index].get(), piece.offset};
}

SymbolicWorld::Place SymbolicWorld::slot_place(const Operand& operand, uint64_t bytes) {
  Queue& from = queue(operand.rank, at_.rank, operand.channel);
  if (from.waited != from.credited + 1) return refused("reads a slot that it does not hold");
  const Piece part = tiling().in_message(operand, bytes, at_.tile);
  const Message& message = from.messages.front();
  if (message.bytes != part.bytes) return refused("reads another size than the message has");
  if (operand.placed != message.placed) return refused("reads as placed what is not, or not");
  if (message.out_of_slot.output.cells != nullptr) return message.out_of_slot.output;
  if (message.out_of_slot.source.cells != nullptr) return source_place(message.out_of_slot, bytes);
  return {&from.slots[from.credited % bounds_.slot_depth], part.offset};
}

SymbolicWorld::Place SymbolicWorld::peer_slot_place(const Operand& operand, uint64_t bytes) {
  Queue& to = queue(at_.rank, operand.rank, operand.channel);
  if (to.acquired != to.sent + 1) return refused("writes a slot that it has no credit for");
  const Piece part = tiling().in_message(operand, bytes, at_.tile);
  if (part.bytes > bounds_.slot_bytes) return refused("a message larger than a slot");
  if (to.filled_bytes != 0 && to.message_bytes != part.bytes) {
    return refused("writes parts of different messages");
  }
  to.slots.resize(bounds_.slot_depth);
  Cells& cells = to.slots[to.sent % bounds_.slot_depth];
  cells.resize(bounds_.slot_bytes);
  to.filled_bytes += bytes;
  to.message_bytes = part.bytes;
  to.filled_placed = operand.placed;
  if (operand.placed && grants(operand.rank)) {
    return place_in_output(operand.rank, operand.blocks, bytes);
  }
  return {&cells, part.offset};
}

SymbolicWorld::OutOfSlot SymbolicWorld::zero_copy_source(const Step& step) {
  if (step.operands == 0 || !sends_zero_copy()) return {};
  const Operand& source = plan().operands[step.first_operand];
  const uint64_t bytes = tiling().piece(source.blocks, at_.tile).bytes;
  if (bytes == 0) return {};
  return {.source = place_of(source, bytes),
          .bytes = bytes,
          .source_block = source.blocks.first,
          .output = {}};
}

SymbolicWorld::Place SymbolicWorld::source_place(const OutOfSlot& message, uint64_t bytes) {
  if (message.bytes != bytes) return refused("reads other bytes than its source holds");
  return message.source;
}

// A stage's message may be read block by block: so many bytes behind the source's first block,
// which the operand must know.
SymbolicWorld::Place SymbolicWorld::part_of_source(const OutOfSlot& message, const Operand& operand,
                                                   uint64_t bytes) {
  if (operand.source_first != message.source_block) return refused("mistakes a source's beginning");
  const uint64_t begin = tiling().piece(block(operand.source_first), at_.tile).offset;
  const uint64_t ahead = tiling().piece(operand.blocks, at_.tile).offset - begin;
  if (ahead + bytes > message.bytes) return refused("reads past its source's end");
  return {message.source.cells, message.source.offset + ahead};
}

SymbolicWorld::Place SymbolicWorld::stage_place(const Operand& operand, uint64_t bytes) {
  const uint64_t offset = tiling().stage_offset(operand.blocks.first, at_.tile);
  if (offset + bytes > bounds_.stage_bytes) return refused("a message larger than a stage");
  const uint64_t sent = queue(at_.rank, first_reader(at_.rank), operand.channel).sent;
  for (uint16_t peer = 0; peer < world_; ++peer) {
    if (!reads_stages_of(peer, at_.rank)) continue;
    const Queue& to = queue(at_.rank, peer, operand.channel);
    if (to.acquired != to.sent + 1) return refused("writes a stage that it has no credit for");
    if (to.sent != sent) return refused("writes a stage that only some of the others were sent");
  }
  const size_t channel = operand.channel - kFirstStageChannel;
  Cells& cells = ranks_[at_.rank].stages[channel][sent % bounds_.stage_depth];
  cells.resize(bounds_.stage_bytes);
  return {&cells, offset};
}

SymbolicWorld::Place SymbolicWorld::peer_stage_place(const Operand& operand, uint64_t bytes) {
  const Queue& from = queue(operand.rank, at_.rank, operand.channel);
  if (from.waited != from.credited + 1) return refused("reads a stage that it does not hold");
  const OutOfSlot& message = from.messages.front().out_of_slot;
  if (message.source.cells != nullptr) return part_of_source(message, operand, bytes);
  const uint64_t offset = tiling().stage_offset(operand.blocks.first, at_.tile);
  if (offset + bytes > bounds_.stage_bytes) return refused("reads past a stage's end");
  const size_t channel = operand.channel - kFirstStageChannel;
  Cells& cells = ranks_[operand.rank].stages[channel][from.credited % bounds_.stage_depth];
  cells.resize(bounds_.stage_bytes);
  return {&cells, offset};
}

// A destination may be exactly a source; nothing else may overlap.
void SymbolicWorld::check_overlap(const Step& step, uint64_t bytes) {
  const size_t source_count = step.operands - step.destinations;
  for (size_t d = source_count; d < places_.size(); ++d) {
    for (size_t other = 0; other < d; ++other) {
      if (places_[d].cells != places_[other].cells) continue;
      const uint64_t distance = std::max(places_[d].offset, places_[other].offset) -
                                std::min(places_[d].offset, places_[other].offset);
      const bool exactly_a_source = other < source_count && distance == 0;
      if (distance < bytes && !exactly_a_source) return refuse("its operands overlap");
    }
  }
}

SymbolicWorld::Place SymbolicWorld::refused(const std::string& why) {
  refuse(why);
  return {};
}

}  // namespace rdmacoll
