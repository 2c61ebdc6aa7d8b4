// PlanBuilder: where waits, credits and signals are put around a step.
#include "csrc/plan/builder.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/limits.h"

namespace rdmacoll {

std::vector<uint16_t> others_from(uint16_t rank, uint16_t world) {
  std::vector<uint16_t> others;
  for (int distance = 1; distance < world; ++distance) {
    others.push_back(around(rank, distance, world));
  }
  return others;
}

PlanBuilder::PlanBuilder(Collective collective, Algorithm algorithm, uint16_t rank, uint16_t world,
                         uint32_t blocks)
    : PlanBuilder(collective, algorithm, rank, Islands::together(world), blocks) {}

PlanBuilder::PlanBuilder(Collective collective, Algorithm algorithm, uint16_t rank,
                         const Islands& islands, uint32_t blocks) {
  const auto world = static_cast<uint16_t>(islands.world());
  RDMACOLL_CHECK(rank < world && world <= kMaxWorld && blocks <= UINT16_MAX);
  const std::span<const uint16_t> island = islands.members(islands.of(rank));
  for (uint16_t place : others_from(islands.place(rank), static_cast<uint16_t>(island.size()))) {
    others_.push_back(island[place]);
  }
  if (!others_.empty()) plan_.stage_reader = others_.front();
  plan_.collective = collective;
  plan_.algorithm = algorithm;
  plan_.rank = rank;
  plan_.world = world;
  plan_.blocks = static_cast<uint16_t>(blocks);
}

void PlanBuilder::lane() {
  if (!plan_.lanes.empty() && plan_.lanes.back().steps == 0) plan_.lanes.pop_back();
  plan_.lanes.push_back({static_cast<uint32_t>(plan_.steps.size()), 0});
}

void PlanBuilder::copy(Operand source, const Operands& destinations) {
  whole({.kind = StepKind::Copy}, {source}, destinations);
}

void PlanBuilder::reduce(const Operands& sources, const Operands& destinations) {
  if (sources.size() == 1) return copy(sources.front(), destinations);
  whole({.kind = StepKind::Reduce}, sources, destinations);
}

void PlanBuilder::finish(const Operands& sources, const Operands& destinations) {
  whole({.kind = StepKind::Reduce, .finishes = true}, sources, destinations);
}

void PlanBuilder::bare_copy(Operand source, const Operands& destinations) {
  bare({.kind = StepKind::Copy}, {source}, destinations);
}

void PlanBuilder::bare_reduce(const Operands& sources, const Operands& destinations) {
  if (sources.size() == 1) return bare_copy(sources.front(), destinations);
  bare({.kind = StepKind::Reduce}, sources, destinations);
}

void PlanBuilder::bare_finish(const Operands& sources, const Operands& destinations) {
  bare({.kind = StepKind::Reduce, .finishes = true}, sources, destinations);
}

void PlanBuilder::wait(Counter counter, uint16_t peer, uint8_t channel, BlockRange blocks) {
  add_step({.kind = StepKind::Wait,
            .counter = counter,
            .channel = channel,
            .peer = peer,
            .blocks = blocks});
}

void PlanBuilder::signal(Counter counter, uint16_t peer, uint8_t channel, BlockRange blocks) {
  add_step({.kind = StepKind::Signal,
            .counter = counter,
            .channel = channel,
            .peer = peer,
            .blocks = blocks});
}

void PlanBuilder::signal_data(uint16_t peer, uint8_t channel, BlockRange blocks, Operand source) {
  const auto at = static_cast<uint32_t>(plan_.operands.size());
  add_operand(source);
  add_step({.kind = StepKind::Signal,
            .counter = Counter::Data,
            .channel = channel,
            .peer = peer,
            .operands = 1,
            .first_operand = at,
            .blocks = blocks});
}

void PlanBuilder::hold_stages(const std::vector<uint16_t>& peers, uint8_t channel,
                              BlockRange message) {
  for (uint16_t peer : peers) wait(Counter::Data, peer, channel, message);
  held_channel_ = channel;
}

void PlanBuilder::release_stages(const std::vector<uint16_t>& peers, uint8_t channel,
                                 BlockRange message) {
  held_channel_ = 0;
  for (uint16_t peer : peers) signal(Counter::Credit, peer, channel, message);
}

void PlanBuilder::number_blocks_by(const Islands& islands) {
  RDMACOLL_CHECK(plan_.blocks == islands.world());
  plan_.block_ranks = islands.host_order();
}

void PlanBuilder::cut_alike(uint32_t slot_blocks, uint32_t stage_blocks) {
  RDMACOLL_CHECK(plan_.slot_blocks <= slot_blocks);
  plan_.slot_blocks = static_cast<uint16_t>(slot_blocks);
  plan_.stage_blocks = static_cast<uint16_t>(stage_blocks);
}

Plan PlanBuilder::take() {
  if (!plan_.lanes.empty() && plan_.lanes.back().steps == 0) plan_.lanes.pop_back();
  note_peers();
  return std::move(plan_);
}

void PlanBuilder::note_peers() {
  std::vector<bool> is_peer(plan_.world);
  for (const Step& step : plan_.steps) {
    const bool is_local = step.kind == StepKind::Copy || step.kind == StepKind::Reduce;
    if (!is_local && step.peer != plan_.rank) is_peer[step.peer] = true;
  }
  for (uint16_t rank = 0; rank < plan_.world; ++rank) {
    if (is_peer[rank]) plan_.peers.push_back(rank);
  }
}

// Whether the step waits for the operand's message and returns it.
bool PlanBuilder::is_received(const Operand& operand) const {
  return operand.buffer == Buffer::Slot ||
         (operand.buffer == Buffer::PeerStage && operand.channel != held_channel_);
}

void PlanBuilder::whole(Step step, const Operands& sources, const Operands& destinations) {
  const BlockRange range = sources.front().blocks;
  for (const Operand& source : sources) {
    if (!is_received(source)) continue;
    wait(Counter::Data, source.rank, source.channel, range);
    mark_placed(source);
  }
  for (const Operand& to : destinations) {
    if (to.buffer == Buffer::PeerSlot) wait(Counter::Credit, to.rank, to.channel, range);
    if (to.buffer != Buffer::Stage) continue;
    for (uint16_t peer : others_) wait(Counter::Credit, peer, to.channel, range);
  }
  const std::optional<Operand> source = bare(step, sources, destinations);
  const auto announce = [&](uint16_t peer, uint8_t channel) {
    if (source && peer != plan_.rank) {
      signal_data(peer, channel, range, *source);
    } else {
      signal(Counter::Data, peer, channel, range);
    }
  };
  for (const Operand& to : destinations) {
    if (to.buffer == Buffer::PeerSlot) {
      announce(to.rank, to.channel);
      mark_placed(to);
    }
    if (to.buffer != Buffer::Stage) continue;
    for (uint16_t peer : others_) announce(peer, to.channel);
  }
  for (const Operand& source : sources) {
    if (is_received(source)) signal(Counter::Credit, source.rank, source.channel, range);
  }
}

// Returns the source of what the step sends.
std::optional<Operand> PlanBuilder::bare(Step step, const Operands& sources,
                                         const Operands& destinations) {
  RDMACOLL_CHECK(sources.size() + destinations.size() <= UINT16_MAX);
  step.blocks = sources.front().blocks;
  step.first_operand = static_cast<uint32_t>(plan_.operands.size());
  step.operands = static_cast<uint16_t>(sources.size() + destinations.size());
  step.destinations = static_cast<uint16_t>(destinations.size());
  for (const Operand& operand : sources) add_operand(operand);
  for (const Operand& operand : destinations) add_operand(operand);
  add_step(step);
  const Operand* source = zero_copy_ ? source_of(plan_, step) : nullptr;
  if (source == nullptr) return std::nullopt;
  for (auto to = plan_.operands.end() - step.destinations; to != plan_.operands.end(); ++to) {
    const bool to_another = to->buffer == Buffer::PeerSlot && to->rank != plan_.rank;
    to->zero_copy = to_another || to->buffer == Buffer::Stage;
  }
  return *source;
}

void PlanBuilder::add_operand(const Operand& operand) {
  if (operand.buffer == Buffer::Slot || operand.buffer == Buffer::PeerSlot) {
    plan_.slot_blocks = std::max({plan_.slot_blocks, operand.blocks.count, operand.message.count});
  }
  if (operand.buffer == Buffer::Stage || operand.buffer == Buffer::PeerStage) {
    plan_.stage_blocks = plan_.blocks;
  }
  plan_.operands.push_back(operand);
}

void PlanBuilder::add_step(const Step& step) {
  plan_.steps.push_back(step);
  ++plan_.lanes.back().steps;
}

}  // namespace rdmacoll
