// Plan: the names people read in logs and write in RDMACOLL_ALGO.
#include "csrc/plan/plan.h"

namespace rdmacoll {

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
  }
  return "?";
}

}  // namespace rdmacoll
