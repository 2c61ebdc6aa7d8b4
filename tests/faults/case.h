// Case: one cell of the fault matrix: what happens to one rank, in the middle of what, among how
// many. Floor: tests. Thread: values.
#pragma once

#include <string>
#include <vector>

#include "csrc/plan/plan.h"

namespace rdmacoll::faults {

enum class Fault {
  Kill,   // SIGKILL, as the system does when memory is out
  Exit,   // the process ends and destroys nothing
  Leave,  // the group is destroyed while the others go on
  Stop,   // SIGSTOP; once the others have raised, it wakes
};

enum class Phase {
  Meeting,  // the group is being made
  Between,  // the rank does not come to an operation that the others are in
  Inside,   // at a random time within an operation
};

struct Case {
  Fault fault;
  Phase phase;
  Collective collective;
  int world;
  int victim;

  std::string name() const;  // "kill inside all_reduce of 4, rank 3"
};

const char* fault_name(Fault fault);
const char* phase_name(Phase phase);
std::vector<Case> all_cases();

}  // namespace rdmacoll::faults
