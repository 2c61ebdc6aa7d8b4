// Executor: the interpreter of plans. Floor: engine/collective. Thread: the driver.
#include "csrc/engine/collective/executor.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/memory/copy.h"

namespace rdmacoll {
namespace {

// A grant costs a line and the wait for it, so direct placement takes more bytes to be worth it
// than a send without a copy.
constexpr uint64_t kPlacementTimesZeroCopy = 8;

// Line::length_and_sequence: a message's bytes, and above them the low bits of its collective's
// number.
constexpr int kLengthBits = 20;
constexpr uint32_t kSequenceMask = ~0u << kLengthBits;

constexpr uint32_t packed_sequence(uint64_t sequence) {
  return static_cast<uint32_t>(sequence) << kLengthBits;
}

Tiling tiling_of(const Operation& operation, const Layout& layout) {
  const Plan& plan = *operation.plan;
  if (operation.contiguous) {
    return Tiling::contiguous(operation.bytes, plan, layout.slot_bytes(), layout.stage_bytes(),
                              operation.grain);
  }
  return Tiling::scattered(operation.block_bytes, plan, layout.slot_bytes(), layout.stage_bytes(),
                           operation.grain);
}

}  // namespace

Executor::Executor(PeerLinks& links, const Heap* heap, const Config& config, const Clock& clock)
    : links_(links),
      layout_(links.layout()),
      heap_(heap),
      store_choice_(config.stores, clock),
      placement_(links, heap, clock,
                 kPlacementTimesZeroCopy * static_cast<uint64_t>(config.zero_copy_remote_bytes)),
      zero_copy_{static_cast<uint64_t>(config.zero_copy_remote_bytes)} {}

bool Executor::has_met(const Plan& plan) const {
  return links_.all_met() || std::all_of(plan.peers.begin(), plan.peers.end(),
                                         [&](uint32_t peer) { return links_.at(peer) != nullptr; });
}

void Executor::start(const Operation& operation) {
  RDMACOLL_CHECK(!running());
  operation_ = &operation;
  status_ = Status();
  tiling_ = tiling_of(operation, layout_);
  const uint64_t bytes = operation.total_bytes();
  choose_zero_copy(bytes);
  placement_.begin(operation, bytes);
  const bool in_heap = results_in_heap();  // where peers read them
  to_peers_ = store_choice_.begin(operation.plan->collective, bytes, in_heap);
  to_output_ = bytes >= kStreamBytes ? Stores::Streamed : Stores::Cached;
  if (in_heap) to_output_ = to_peers_.stores;
  const Plan& plan = *operation.plan;
  lanes_.assign(plan.lanes.size(), LaneState{});
  lanes_left_ = 0;
  for (size_t lane = 0; lane < plan.lanes.size(); ++lane) {
    const Step* first = plan.steps.data() + plan.lanes[lane].first_step;
    uint64_t& tiles = lanes_[lane].tiles;
    for (const Step* step = first; step != first + plan.lanes[lane].steps; ++step) {
      tiles = std::max(tiles, tiling_->tiles(step->blocks));
      if (tiles == tiling_->most_tiles()) break;
    }
    lanes_left_ += tiles > 0;
  }
}

bool Executor::advance() {
  bool moved = false;
  placement_.send_grants();
  // Later lanes first: they take what earlier ones left in the caches, and free its place.
  for (uint32_t lane = static_cast<uint32_t>(lanes_.size()); lane-- > 0 && status_.ok();) {
    moved |= advance_lane(lane);
  }
  if (lanes_left_ == 0 && !unsettled_.empty()) moved |= settle();
  return moved;
}

bool Executor::advance_lane(uint32_t lane) {
  LaneState& state = lanes_[lane];
  if (state.tile == state.tiles) return false;
  const Lane& range = operation_->plan->lanes[lane];
  const Step* steps = operation_->plan->steps.data() + range.first_step;
  const uint32_t first = state.step;
  while (state.step < range.steps) {
    const Step& step = steps[state.step];
    const bool token = step.blocks.count == 0;
    const uint64_t bytes = token ? 0 : tiling_->piece(step.blocks, state.tile).bytes;
    const bool due = token ? state.tile == 0 : bytes > 0;
    if (due && !run(step, state.tile, bytes)) return state.step != first;
    ++state.step;
  }
  state.step = 0;
  if (++state.tile == state.tiles && --lanes_left_ == 0) store_choice_.end(to_peers_);
  return true;
}

bool Executor::run(const Step& step, uint64_t tile, uint64_t bytes) {
  switch (step.kind) {
    case StepKind::Wait:
      return wait(step, bytes);
    case StepKind::Signal:
      return step.counter == Counter::Data ? signal_data(step, tile, bytes)
                                           : signal_credit(step, bytes);
    case StepKind::Copy:
      store_choice_.time(to_peers_, [&] { copy(step, tile); });
      return true;
    case StepKind::Reduce:
      store_choice_.time(to_peers_, [&] { fold(step, tile); });
      return true;
  }
  return false;
}

bool Executor::wait(const Step& step, uint64_t bytes) {
  Port& from = port(step.channel, step.peer);
  if (step.counter == Counter::Credit) return from.can_send();
  const Line* line = from.take();
  if (line == nullptr) return false;
  if (line->signature != operation_->message_signature(step.blocks) ||
      line->length_and_sequence != length_and_sequence(bytes)) {
    status_ = mismatch_with(step.peer, operation_->call());
    return false;
  }
  return true;
}

bool Executor::signal_data(const Step& step, uint64_t tile, uint64_t bytes) {
  std::optional<ZeroCopySource> source;
  if (has_zero_copy() && step.operands != 0) {
    source = zero_copy_source(operation_->plan->operands[step.first_operand], step.peer, tile);
  }
  std::optional<RemoteSlice> placement;
  if (step.placed) {
    if (placement_.is_undecided(step.peer)) return false;
    // Where one that has given up wants it, its user may soon write something else.
    if (!links_.has_given_up(step.peer)) {
      placement = placement_.place(step.peer, step.blocks, tiling_->piece(step.blocks, tile));
    }
  }
  Port& to = port(step.channel, step.peer);
  if (!to.announce(operation_->message_signature(step.blocks), bytes, length_and_sequence(bytes),
                   source ? &*source : nullptr, placement ? &*placement : nullptr)) {
    return false;
  }
  if (source) keep_unsettled(step.channel, step.peer);
  return true;
}

bool Executor::signal_credit(const Step& step, uint64_t bytes) {
  Port& from = port(step.channel, step.peer);
  const bool zero_copy = from.is_zero_copy(bytes);
  if (zero_copy && links_.has_given_up(step.peer)) return false;
  from.consume(zero_copy);
  if (zero_copy) keep_unsettled(step.channel, step.peer);
  return true;
}

void Executor::copy(const Step& step, uint64_t tile) {
  const Operand* operands = &operation_->plan->operands[step.first_operand];
  const Piece from_piece = tiling_->piece(operands[0].blocks, tile);
  const std::byte* from = source(operands[0], from_piece, tile);
  for (uint32_t i = 1; i < step.operands; ++i) {
    if (is_zero_copy(step, operands[i], tile)) continue;
    std::byte* to = destination(operands[i], tiling_->piece(operands[i].blocks, tile), tile);
    if (to == from) continue;
    copy_bytes(to, from, from_piece.bytes, stores_for(operands[i]));
  }
}

void Executor::fold(const Step& step, uint64_t tile) {
  const Operand* operands = &operation_->plan->operands[step.first_operand];
  const uint32_t source_count = step.operands - step.destinations;
  const Piece first_piece = tiling_->piece(operands[0].blocks, tile);
  sources_.clear();
  destinations_.clear();
  for (uint32_t i = 0; i < source_count; ++i) {
    sources_.push_back(source(operands[i], tiling_->piece(operands[i].blocks, tile), tile));
  }
  uint32_t streamed = 0;
  for (uint32_t i = source_count; i < step.operands; ++i) {
    if (is_zero_copy(step, operands[i], tile)) continue;
    const size_t number = destinations_.size();
    if (number < kStreamedMax && stores_for(operands[i]) == Stores::Streamed) {
      streamed |= 1u << number;
    }
    destinations_.push_back(
        destination(operands[i], tiling_->piece(operands[i].blocks, tile), tile));
  }
  Reduction reduction = operation_->reduction;
  if (!step.finishes) reduction.divisor = 1;
  reduce(reduction, sources_.data(), sources_.size(), destinations_.data(), destinations_.size(),
         first_piece.bytes, streamed);
}

Stores Executor::stores_for(const Operand& destination) const {
  switch (destination.buffer) {
    case Buffer::Output:
      return to_output_;
    case Buffer::PeerSlot:
      return link(destination.rank).is_mapped() ? to_peers_.stores : Stores::Cached;
    default:
      return to_peers_.stores;
  }
}

const std::byte* Executor::source(const Operand& operand, const Piece& piece, uint64_t tile) const {
  switch (operand.buffer) {
    case Buffer::Input:
      return in_input(operand.blocks, piece);
    case Buffer::Output:
      return in_output(operand.blocks, piece);
    case Buffer::Slot:
    case Buffer::PeerStage:
      return received(operand, piece, tile);
    case Buffer::PeerSlot:
    case Buffer::Stage:
      break;
  }
  RDMACOLL_CHECK(!"a plan reads only inputs, outputs, slots and peers' stages");
  return nullptr;
}

const std::byte* Executor::received(const Operand& operand, const Piece& piece,
                                    uint64_t tile) const {
  const Port& from = port(operand.channel, operand.rank);
  const Piece part = tiling_->in_message(operand, piece.bytes, tile);
  if (from.is_zero_copy(part.bytes))
    return from.in_source(ahead_in_source(operand, piece, tile), piece.bytes);
  if (from.is_placed(part.bytes)) return in_output(operand.blocks, piece);
  if (operand.buffer == Buffer::Slot) return from.incoming(part.bytes) + part.offset;
  return link(operand.rank).block.base + layout_.stages(operand.channel) +
         from.incoming_index() * layout_.stage_bytes() +
         tiling_->stage_offset(operand.blocks.first, tile);
}

// Of a stage's message a part may be read.
uint64_t Executor::ahead_in_source(const Operand& operand, const Piece& piece,
                                   uint64_t tile) const {
  if (operand.buffer == Buffer::Slot || operand.source_first == operand.blocks.first) return 0;
  return piece.offset - tiling_->piece({operand.source_first, 1}, tile).offset;
}

const std::byte* Executor::in_input(BlockRange range, const Piece& piece) const {
  return (operation_->contiguous ? operation_->input : operation_->inputs[range.first]) +
         piece.offset;
}

std::byte* Executor::in_output(BlockRange range, const Piece& piece) const {
  return (operation_->contiguous ? operation_->output : operation_->outputs[range.first]) +
         piece.offset;
}

std::byte* Executor::destination(const Operand& operand, const Piece& piece, uint64_t tile) {
  switch (operand.buffer) {
    case Buffer::Output:
      return in_output(operand.blocks, piece);
    case Buffer::PeerSlot: {
      const Piece part = tiling_->in_message(operand, piece.bytes, tile);
      return port(operand.channel, operand.rank).outgoing(part.bytes) + part.offset;
    }
    case Buffer::Stage:
      return links_.block().base + layout_.stages(operand.channel) +
             port(operand.channel, stage_reader()).outgoing_index() * layout_.stage_bytes() +
             tiling_->stage_offset(operand.blocks.first, tile);
    case Buffer::Input:
    case Buffer::Slot:
    case Buffer::PeerStage:
      break;
  }
  RDMACOLL_CHECK(!"a plan writes only outputs, peers' slots and its own stages");
  return nullptr;
}

uint32_t Executor::length_and_sequence(uint64_t bytes) const {
  static_assert(kStageBytesMax < 1 << kLengthBits && kSlotBytesMax < 1 << kLengthBits);
  return static_cast<uint32_t>(bytes) | packed_sequence(operation_->sequence);
}

Status mismatch_with(uint32_t peer, const CollectiveCall& mine) {
  return Status(StatusCode::Mismatch,
                "rank " + std::to_string(peer) + " is in another operation than this rank's " +
                    describe(mine) +
                    "; all ranks of a group must start the same collectives in the same order, "
                    "with equal dtype, operation, root and sizes");
}

Status Executor::compare_with(uint32_t peer) const {
  for (uint8_t channel = 0; running() && channel < kPlanChannels; ++channel) {
    const Line* line = port(channel, peer).peek();
    if (line == nullptr) continue;
    const bool same_number =
        (line->length_and_sequence & kSequenceMask) == packed_sequence(operation_->sequence);
    const bool same_operation = ((line->signature ^ operation_->signature) & 0xFFFF) == 0;
    if (same_number && !same_operation) return mismatch_with(peer, operation_->call());
  }
  return Status();
}

uint64_t Executor::messages_due(uint32_t lane, uint8_t channel, uint32_t peer) const {
  const LaneState& state = lanes_[lane];
  const Lane& range = operation_->plan->lanes[lane];
  uint64_t count = 0;
  for (uint32_t i = 0; i < range.steps; ++i) {
    const Step& step = operation_->plan->steps[range.first_step + i];
    if (step.kind != StepKind::Wait || step.counter != Counter::Data || step.peer != peer ||
        step.channel != channel) {
      continue;
    }
    const uint64_t tiles = tiling_->tiles(step.blocks);
    const uint64_t next = state.tile + (i < state.step ? 1 : 0);
    count += tiles > next ? tiles - next : 0;
  }
  return count;
}

bool Executor::may_write_output(uint32_t peer) const {
  if (!placement_.is_granted_to(peer)) return false;
  uint64_t due = 0;
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    due += messages_due(lane, kOrderedChannel, peer);
  }
  return due > port(kOrderedChannel, peer).arrived();
}

bool Executor::needs(uint32_t peer) const {
  if (lanes_left_ == 0) return is_unsettled_with(peer) && link(peer).is_mapped();
  for (uint32_t lane = 0; running() && lane < lanes_.size(); ++lane) {
    const LaneState& state = lanes_[lane];
    if (state.tile == state.tiles) continue;
    for (uint8_t channel = 0; channel < kPlanChannels; ++channel) {
      if (messages_due(lane, channel, peer) > port(channel, peer).arrived()) return true;
    }
    const Step& step =
        operation_->plan->steps[operation_->plan->lanes[lane].first_step + state.step];
    const bool for_credit = step.kind == StepKind::Wait && step.counter == Counter::Credit;
    if (for_credit && step.peer == peer && !port(step.channel, peer).can_send()) return true;
    // Stuck for good: what was read out of the source is not to be trusted (signal_credit).
    const bool returns = step.kind == StepKind::Signal && step.counter == Counter::Credit;
    if (returns && step.peer == peer && links_.has_given_up(peer)) return true;
  }
  return false;
}

bool Executor::waits_for(uint32_t peer) const {
  return needs(peer) || (lanes_left_ == 0 && is_unsettled_with(peer));
}

}  // namespace rdmacoll
