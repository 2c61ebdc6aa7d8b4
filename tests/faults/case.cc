// Case. Floor: tests.
#include "tests/faults/case.h"

namespace rdmacoll::faults {

const char* fault_name(Fault fault) {
  switch (fault) {
    case Fault::Kill:
      return "kill";
    case Fault::Exit:
      return "exit";
    case Fault::Leave:
      return "leave";
    case Fault::Stop:
      return "stop";
  }
  return "?";
}

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::Meeting:
      return "meeting";
    case Phase::Between:
      return "between";
    case Phase::Inside:
      return "inside";
  }
  return "?";
}

std::string Case::name() const {
  return std::string(fault_name(fault)) + " " + phase_name(phase) + " " +
         collective_name(collective) + " of " + std::to_string(world) + ", rank " +
         std::to_string(victim);
}

// While ranks meet there is no collective, nor a group to leave; one that is stopped there holds
// the others up until their deadline for connections, which other tests have. Every rank's turn to
// be the victim comes.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  int turn = 0;
  const auto add = [&](Fault fault, Phase phase, Collective collective, int world) {
    cases.push_back({fault, phase, collective, world, turn++ % world});
  };
  for (const int world : {2, 3, 4, 7}) {
    for (const Fault fault : {Fault::Kill, Fault::Exit}) {
      add(fault, Phase::Meeting, Collective::AllReduce, world);
    }
    for (const Fault fault : {Fault::Kill, Fault::Exit, Fault::Leave, Fault::Stop}) {
      for (const Phase phase : {Phase::Between, Phase::Inside}) {
        for (size_t i = 0; i < kCollectives; ++i) {
          add(fault, phase, static_cast<Collective>(i), world);
        }
      }
    }
  }
  return cases;
}

}  // namespace rdmacoll::faults
