// Plan: what a collective is, and the names people read in logs and write in RDMACOLL_ALGO.
#include "csrc/plan/plan.h"

#include <algorithm>

namespace rdmacoll {

bool reduces(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::Reduce ||
         collective == Collective::ReduceScatter;
}

bool is_contiguous(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::Reduce ||
         collective == Collective::Broadcast || collective == Collective::Barrier;
}

const char* collective_name(Collective collective) {
  switch (collective) {
    case Collective::AllReduce:
      return "all_reduce";
    case Collective::Broadcast:
      return "broadcast";
    case Collective::Reduce:
      return "reduce";
    case Collective::AllGather:
      return "all_gather";
    case Collective::ReduceScatter:
      return "reduce_scatter";
    case Collective::AllToAll:
      return "all_to_all";
    case Collective::Gather:
      return "gather";
    case Collective::Scatter:
      return "scatter";
    case Collective::Barrier:
      return "barrier";
  }
  return "?";
}

const char* algorithm_name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::Direct:
      return "direct";
    case Algorithm::Ring:
      return "ring";
    case Algorithm::Tree:
      return "tree";
    case Algorithm::HalvingDoubling:
      return "halving_doubling";
    case Algorithm::OneShot:
      return "one_shot";
    case Algorithm::TwoShot:
      return "two_shot";
    case Algorithm::Dissemination:
      return "dissemination";
    case Algorithm::Rails:
      return "rails";
    case Algorithm::Leaders:
      return "leaders";
  }
  return "?";
}

const Operand* source_of(const Plan& plan, const Step& step) {
  const auto first = plan.operands.begin() + step.first_operand;
  const auto last = first + step.operands;
  const auto is_output = [](const Operand& o) { return o.buffer == Buffer::Output; };
  const bool copies_it =
      step.kind == StepKind::Copy && (first->buffer == Buffer::Input || is_output(*first));
  const auto source = copies_it ? first : std::find_if(last - step.destinations, last, is_output);
  return source == last ? nullptr : &*source;
}

}  // namespace rdmacoll
