// SymbolicWorld: the schedule, the counters, and what must hold at the end.
#include "csrc/plan/verify/world.h"

#include <algorithm>

#include "csrc/plan/verify/shape.h"

namespace rdmacoll {
namespace {

Tiling tiling_of(const WorldPlan& operation, uint16_t rank, const Bounds& bounds) {
  const Plan& plan = operation.plans[rank];
  if (is_contiguous(plan.collective)) {
    return Tiling::contiguous(operation.bytes, plan, bounds.slot_bytes, bounds.stage_bytes,
                              bounds.grain);
  }
  return Tiling::scattered(operation.block_bytes[rank], plan, bounds.slot_bytes, bounds.stage_bytes,
                           bounds.grain);
}

}  // namespace

SymbolicWorld::SymbolicWorld(const std::vector<WorldPlan>& operations, const Bounds& bounds)
    : operations_(operations),
      bounds_(bounds),
      world_(static_cast<uint16_t>(operations.front().plans.size())),
      symbols_(world_),
      seats_(operations.size()),
      buffers_(operations.size()),
      ranks_(world_),
      queues_(size_t{world_} * world_ * kPlanChannels) {
  for (uint32_t index = 0; index < operations.size(); ++index) {
    for (uint16_t rank = 0; rank < world_; ++rank) {
      lanes_ = std::max<uint32_t>(lanes_, operations[index].plans[rank].lanes.size());
      seats_[index].push_back({tiling_of(operations[index], rank, bounds), 0, {}});
      buffers_[index].push_back(make_buffers(operations[index], index, rank, symbols_));
    }
  }
  const size_t all_lanes = size_t{world_} * lanes_;
  clocks_.assign(all_lanes, Clock(all_lanes, 0));
  for (Rank& rank : ranks_) {
    rank.past.assign(all_lanes, 0);
    rank.stages.assign(kStageChannels, std::vector<Cells>(bounds.stage_depth));
  }
}

std::string SymbolicWorld::run() {
  for (uint16_t rank = 0; rank < world_; ++rank) start(rank);
  for (bool ran = true; ran && failure_.empty();) {
    ran = false;
    for (uint16_t rank = 0; rank < world_; ++rank) ran |= advance(rank);
  }
  if (failure_.empty()) check_deadlock();
  if (failure_.empty()) check_balance();
  if (failure_.empty()) check_results();
  return failure_;
}

// The lanes of an operation know all that the operation before knew, and not each other.
void SymbolicWorld::start(uint16_t rank) {
  Rank& state = ranks_[rank];
  if (state.operation == operations_.size()) return;
  at_.rank = rank;
  const Plan& plan = plan_of(rank);
  state.lanes.assign(plan.lanes.size(), {});
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    Clock& clock = clocks_[lane_id(rank, lane)];
    clock = state.past;
    ++clock[lane_id(rank, lane)];
    if (lane >= plan.lanes.size()) continue;
    for (uint32_t i = 0; i < plan.lanes[lane].steps; ++i) {
      const BlockRange range = plan.steps[plan.lanes[lane].first_step + i].blocks;
      state.lanes[lane].tiles = std::max(state.lanes[lane].tiles, tiling().tiles(range));
    }
  }
  const uint32_t first_lane = lane_id(rank, 0);
  Seat& seat = seats_[state.operation][rank];
  seat.start_time = clocks_[first_lane][first_lane];
  seat.granted = state.past;
}

bool SymbolicWorld::advance(uint16_t rank) {
  Rank& state = ranks_[rank];
  if (state.operation == operations_.size()) return false;
  bool ran = false;
  bool all_done = true;
  for (uint32_t lane = 0; lane < state.lanes.size() && failure_.empty(); ++lane) {
    ran |= run_lane(rank, lane);
    all_done &= state.lanes[lane].tile == state.lanes[lane].tiles;
  }
  if (!all_done || !failure_.empty() || !zero_copies_are_read(rank)) return ran;
  end_operation(rank);
  ++state.operation;
  start(rank);
  return true;
}

bool SymbolicWorld::run_lane(uint16_t rank, uint32_t lane) {
  LaneState& state = ranks_[rank].lanes[lane];
  const Lane& steps = plan_of(rank).lanes[lane];
  bool ran = false;
  while (state.tile < state.tiles) {
    at_ = {rank, lane, state.tile, steps.first_step + state.step};
    if (!run_step(plan().steps[at_.step]) || !failure_.empty()) return ran;
    ran = true;
    if (++state.step == steps.steps) {
      state.step = 0;
      ++state.tile;
    }
  }
  return ran;
}

bool SymbolicWorld::zero_copies_are_read(uint16_t rank) {
  for (uint16_t peer = 0; peer < world_; ++peer) {
    for (uint8_t channel = 0; channel < kPlanChannels; ++channel) {
      const Queue& to = queue(rank, peer, channel);
      if (to.credited < to.zero_copies) return false;
    }
  }
  return true;
}

void SymbolicWorld::end_operation(uint16_t rank) {
  Rank& state = ranks_[rank];
  for (uint32_t lane = 0; lane < lanes_; ++lane) join(state.past, clocks_[lane_id(rank, lane)]);
  for (uint16_t peer = 0; peer < world_; ++peer) {
    for (uint8_t channel = 0; channel < kPlanChannels; ++channel) {
      const Queue& to = queue(rank, peer, channel);
      if (to.zero_copies > 0) join(state.past, to.returns);
    }
  }
  if (plan_of(rank).collective != Collective::Barrier) return;
  for (uint16_t peer = 0; peer < world_; ++peer) {
    const uint32_t start_time = seats_[state.operation][peer].start_time;
    if (start_time == 0 || state.past[lane_id(peer, 0)] < start_time) {
      refuse("passes the barrier before rank " + std::to_string(peer) + " is known to be in it");
    }
  }
}

bool SymbolicWorld::run_step(const Step& step) {
  if (at_.tile >= tiling().tiles(step.blocks)) return true;
  if (!granted(step)) return false;
  const uint64_t bytes = tiling().piece(step.blocks, at_.tile).bytes;
  if (step.kind == StepKind::Wait) return run_wait(step, bytes);
  if (step.kind == StepKind::Signal) {
    run_signal(step, bytes);
  } else {
    move(step, bytes);
  }
  return true;
}

bool SymbolicWorld::run_wait(const Step& step, uint64_t bytes) {
  return step.counter == Counter::Credit
             ? wait_credit(queue(at_.rank, step.peer, step.channel), depth_of(step.channel))
             : wait_data(queue(step.peer, at_.rank, step.channel), step, bytes);
}

bool SymbolicWorld::wait_credit(Queue& queue, uint32_t depth) {
  if (queue.acquired != queue.sent) {
    refuse("claims a second message before it has signalled the first");
    return true;
  }
  if (queue.acquired >= depth) {
    const uint64_t visible = queue.credited / (depth / 2) * (depth / 2);
    if (visible <= queue.acquired - depth) return false;
    join(clocks_[me()], queue.credit_clocks.front());
    queue.credit_clocks.pop_front();
  }
  ++queue.acquired;
  queue.filled_bytes = queue.message_bytes = 0;
  queue.filled_placed = false;
  return true;
}

bool SymbolicWorld::wait_data(Queue& queue, const Step& step, uint64_t bytes) {
  if (queue.waited != queue.credited) {
    refuse("waits for a message before it has returned the one before");
    return true;
  }
  if (queue.sent == queue.waited) return false;
  const Message& message = queue.messages.front();
  if (message.bytes != bytes) {
    refuse("waits for " + std::to_string(bytes) + " bytes, but the message has " +
           std::to_string(message.bytes));
  }
  if (message.placed != step.placed) refuse("only one end says that the message is placed");
  join(clocks_[me()], message.past);
  read_placed(message.out_of_slot);
  ++queue.waited;
  return true;
}

void SymbolicWorld::run_signal(const Step& step, uint64_t bytes) {
  Clock& clock = clocks_[me()];
  if (step.counter == Counter::Data) {
    Queue& to = queue(at_.rank, step.peer, step.channel);
    if (to.acquired != to.sent + 1) return refuse("signals without having waited for credit");
    if (!is_stage_channel(step.channel) &&
        (to.filled_bytes != bytes || to.message_bytes != bytes)) {
      return refuse("announces other bytes than it wrote");
    }
    if (to.filled_placed != step.placed) return refuse("announces as placed what is not, or not");
    ++to.sent;
    to.messages.push_back({bytes, step.placed, zero_copy_source(step), clock});
    OutOfSlot& out_of_slot = to.messages.back().out_of_slot;
    place_zero_copy(step, out_of_slot);
    if (out_of_slot.source.cells != nullptr) to.zero_copies = to.sent;
  } else {
    Queue& from = queue(step.peer, at_.rank, step.channel);
    if (from.waited != from.credited + 1) return refuse("returns what it has not waited for");
    ++from.credited;
    from.credit_clocks.push_back(clock);
    if (from.messages.front().out_of_slot.source.cells != nullptr) {
      from.returns.resize(clock.size());
      join(from.returns, clock);
    }
    from.messages.pop_front();
  }
  ++clock[me()];
}

void SymbolicWorld::check_deadlock() {
  for (uint16_t rank = 0; rank < world_; ++rank) {
    const Rank& state = ranks_[rank];
    if (state.operation == operations_.size()) continue;
    for (uint32_t lane = 0; lane < state.lanes.size(); ++lane) {
      if (state.lanes[lane].tile == state.lanes[lane].tiles) continue;
      const uint32_t step = plan_of(rank).lanes[lane].first_step + state.lanes[lane].step;
      at_ = {rank, lane, state.lanes[lane].tile, step};
      return refuse("waits for ever");
    }
  }
}

void SymbolicWorld::check_balance() {
  for (uint16_t from = 0; from < world_; ++from) {
    for (uint16_t to = 0; to < world_; ++to) {
      for (uint8_t channel = 0; channel < kPlanChannels; ++channel) {
        const Queue& messages = queue(from, to, channel);
        const bool all_get_it = !is_stage_channel(channel) || !reads_stages_of(to, from) ||
                                messages.sent == queue(from, first_reader(from), channel).sent;
        if (messages.acquired == messages.sent && messages.sent == messages.waited &&
            messages.waited == messages.credited && all_get_it) {
          continue;
        }
        failure_ = "at the end, from rank " + std::to_string(from) + " to " + std::to_string(to) +
                   " on channel " + std::to_string(channel) + ": " +
                   std::to_string(messages.acquired) + " claimed, " +
                   std::to_string(messages.sent) + " sent, " + std::to_string(messages.waited) +
                   " waited for, " + std::to_string(messages.credited) + " returned";
        return;
      }
    }
  }
}

// All operations are of the same islands.
bool SymbolicWorld::reads_stages_of(uint16_t reader, uint16_t rank) const {
  return reader != rank && operations_.front().islands.share(reader, rank);
}

uint16_t SymbolicWorld::first_reader(uint16_t rank) const {
  uint16_t reader = 0;
  while (!reads_stages_of(reader, rank)) ++reader;
  return reader;
}

void SymbolicWorld::check_results() {
  for (uint32_t index = 0; index < operations_.size() && failure_.empty(); ++index) {
    const std::string why = wrong_result(operations_[index], index, buffers_[index], symbols_);
    if (!why.empty()) failure_ = "operation " + std::to_string(index) + ": " + why;
  }
}

void SymbolicWorld::refuse(const std::string& why) {
  if (!failure_.empty()) return;
  const uint32_t operation = ranks_[at_.rank].operation;
  failure_ = "operation " + std::to_string(operation) + " (" + collective_name(plan().collective) +
             " " + algorithm_name(plan().algorithm) + "), rank " + std::to_string(at_.rank) +
             ", lane " + std::to_string(at_.lane) + ", " + step_text(plan(), at_.step) + ", tile " +
             std::to_string(at_.tile) + ": " + why;
}

}  // namespace rdmacoll
