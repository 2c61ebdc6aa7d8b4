// The shape of a plan: operands, ranges, and one lane per direction of a (peer, channel).
#include "csrc/plan/verify/shape.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace rdmacoll {
namespace {

class Shape {
 public:
  Shape(const Plan& plan, const Islands& islands) : plan_(plan), islands_(islands) {}

  std::string check() {
    if (!plan_.block_ranks.empty() && !numbers_all_ranks()) return "numbers blocks twice, or not";
    uint32_t next_step = 0;
    for (lane_ = 0; lane_ < plan_.lanes.size() && why_.empty(); ++lane_) {
      const Lane& lane = plan_.lanes[lane_];
      if (lane.first_step != next_step) return "lanes do not follow each other";
      if (lane.steps == 0) return "a lane without steps";
      next_step += lane.steps;
      if (next_step > plan_.steps.size()) return "a lane ends behind the steps";
      for (uint32_t i = 0; i < lane.steps; ++i) check_step(lane.first_step + i);
    }
    if (why_.empty() && next_step != plan_.steps.size()) return "steps without a lane";
    return why_;
  }

 private:
  bool numbers_all_ranks() const {
    std::vector<bool> numbered(plan_.world, false);
    for (uint16_t rank : plan_.block_ranks) {
      if (rank >= plan_.world || numbered[rank]) return false;
      numbered[rank] = true;
    }
    const bool of_ranks =
        !is_contiguous(plan_.collective) && plan_.collective != Collective::AllToAll;
    return of_ranks && plan_.block_ranks.size() == plan_.world && plan_.blocks == plan_.world;
  }

  void check_step(uint32_t index) {
    step_ = index;
    const Step& step = plan_.steps[index];
    check_range(step.blocks);
    if (step.kind == StepKind::Wait || step.kind == StepKind::Signal) {
      if (step.channel >= kPlanChannels) refuse("no such channel");
      const bool receives = (step.kind == StepKind::Wait) == (step.counter == Counter::Data);
      if (step.placed && (step.counter != Counter::Data || step.channel != kOrderedChannel)) {
        refuse("is placed, but is no message of the channel for it");
      }
      own(step.peer, step.channel, receives);
      check_home(step);
      return;
    }
    const uint32_t sources = step.operands - step.destinations;
    if (step.destinations == 0 || step.destinations >= step.operands) refuse("too few operands");
    if (step.kind == StepKind::Copy && sources != 1) refuse("copies from several sources");
    if (step.kind == StepKind::Copy && step.finishes) refuse("a copy cannot finish");
    if (step.kind == StepKind::Reduce && !reduces(plan_.collective)) {
      refuse("folds, but the collective has no operation to fold with");
    }
    if (step.first_operand + step.operands > plan_.operands.size()) {
      refuse("operands out of range");
      return;
    }
    for (uint32_t i = 0; i < step.operands; ++i) {
      check_operand(plan_.operands[step.first_operand + i], i >= sources);
    }
    check_placed(step);
  }

  // What is placed is where it belongs: the receiver may only name it so.
  void check_placed(const Step& step) {
    const auto first = plan_.operands.begin() + step.first_operand;
    const auto last = first + step.operands;
    for (auto operand = first; operand != last; ++operand) {
      if (operand->buffer != Buffer::Slot || !operand->placed) continue;
      const bool copied = std::any_of(first, last, [&](const Operand& other) {
        return other.buffer == Buffer::Output && other.blocks == operand->blocks;
      });
      if (step.kind != StepKind::Copy || !copied) refuse("is placed, but is not copied there");
    }
  }

  void check_home(const Step& step) {
    if (step.operands == 0) return;
    if (step.kind != StepKind::Signal || step.counter != Counter::Data || step.operands > 1) {
      return refuse("only a Data signal has a source, and one");
    }
    if (step.peer == plan_.rank) return refuse("a message to itself with a source");
    if (step.first_operand >= plan_.operands.size()) return refuse("operands out of range");
    const Operand& source = plan_.operands[step.first_operand];
    check_range(source.blocks);
    if (source.buffer != Buffer::Input && source.buffer != Buffer::Output) {
      refuse("a source that is not a user's buffer");
    }
  }

  void check_operand(const Operand& operand, bool is_destination) {
    check_range(operand.blocks);
    const bool sent = operand.buffer == Buffer::PeerSlot || operand.buffer == Buffer::Stage;
    if (operand.zero_copy && !sent) refuse("a zero-copy message that is not sent");
    const bool to_itself = operand.buffer == Buffer::PeerSlot && operand.rank == plan_.rank;
    if (operand.zero_copy && to_itself) refuse("a zero-copy message to itself");
    const bool in_slot = operand.buffer == Buffer::Slot || operand.buffer == Buffer::PeerSlot;
    if (operand.placed && !in_slot) refuse("places what does not travel in a slot");
    if (operand.message.count != 0) check_part(operand, in_slot);
    if (operand.blocks.count == 0) refuse("an operand without blocks");
    if (!is_contiguous(plan_.collective) && operand.blocks.count != 1 && !in_slot) {
      refuse("an operand of several scattered blocks");
    }
    switch (operand.buffer) {
      case Buffer::Input:
        if (is_destination) refuse("writes the input");
        break;
      case Buffer::Output:
        break;
      case Buffer::Slot:
        if (is_destination) refuse("writes its own slot");
        check_channel(operand, false);
        own(operand.rank, operand.channel, true);
        break;
      case Buffer::PeerSlot:
        if (!is_destination) refuse("reads a peer's slot");
        check_channel(operand, false);
        own(operand.rank, operand.channel, false);
        break;
      case Buffer::Stage:
        if (!is_destination) refuse("reads its own stage");
        check_channel(operand, true);
        if (islands_.size(islands_.of(plan_.rank)) == 1) refuse("a stage that nobody reads");
        for (uint16_t peer : islands_.members(islands_.of(plan_.rank))) {
          if (peer != plan_.rank) own(peer, operand.channel, false);
        }
        break;
      case Buffer::PeerStage:
        if (is_destination) refuse("writes a peer's stage");
        if (operand.rank >= plan_.world || !islands_.share(operand.rank, plan_.rank)) {
          refuse("reads the memory of a peer that is not mapped");
        }
        check_channel(operand, true);
        own(operand.rank, operand.channel, true);
        break;
    }
  }

  void check_part(const Operand& operand, bool in_slot) {
    const BlockRange part = operand.blocks, message = operand.message;
    check_range(message);
    if (!in_slot || operand.placed || operand.zero_copy) refuse("a part of what has none");
    if (part.first < message.first || part.first + part.count > message.first + message.count) {
      refuse("is no part of its message");
    }
  }

  void check_range(BlockRange range) {
    if (range.first + range.count > plan_.blocks) refuse("blocks out of range");
  }

  void check_channel(const Operand& operand, bool stage) {
    if (operand.channel >= kPlanChannels || is_stage_channel(operand.channel) != stage) {
      refuse("the wrong kind of channel");
    }
  }

  // A direction of a (peer, channel) belongs to the lane that first names it.
  void own(uint16_t peer, uint8_t channel, bool receives) {
    const bool to_itself = peer == plan_.rank && is_stage_channel(channel);
    if (peer >= plan_.world || to_itself) refuse("no such peer");
    const auto [owner, is_new] = owners_.try_emplace({peer, channel, receives}, lane_);
    if (owner->second != lane_) refuse("two lanes in one direction of a channel");
  }

  void refuse(const char* why) {
    if (why_.empty()) {
      why_ = "lane " + std::to_string(lane_) + ", " + step_text(plan_, step_) + ": " + why;
    }
  }

  const Plan& plan_;
  const Islands& islands_;
  uint32_t lane_ = 0;
  uint32_t step_ = 0;
  std::map<std::tuple<uint16_t, uint8_t, bool>, uint32_t> owners_;
  std::string why_;
};

const char* kind_name(StepKind kind) {
  switch (kind) {
    case StepKind::Wait:
      return "Wait";
    case StepKind::Signal:
      return "Signal";
    case StepKind::Copy:
      return "Copy";
    case StepKind::Reduce:
      return "Reduce";
  }
  return "?";
}

}  // namespace

std::string malformed(const Plan& plan, const Islands& islands) {
  return Shape(plan, islands).check();
}

std::string step_text(const Plan& plan, uint32_t index) {
  const Step& step = plan.steps[index];
  std::string text = "step " + std::to_string(index) + " (" + kind_name(step.kind);
  if (step.kind == StepKind::Wait || step.kind == StepKind::Signal) {
    text += step.counter == Counter::Data ? " Data" : " Credit";
    text += ", peer " + std::to_string(step.peer) + ", channel " + std::to_string(step.channel);
  }
  return text + ", blocks " + std::to_string(step.blocks.first) + "+" +
         std::to_string(step.blocks.count) + ")";
}

}  // namespace rdmacoll
