// Bootstrap: how the processes of a new group learn of each other, once. The engine never knows
// whether MPI, a c10d Store or a test carries it.
// Floor: engine/connect. Thread: the one that makes the group.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"

namespace rdmacoll {

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  // Everybody's bytes, by rank. All ranks of the group call it; Timeout names who is missing.
  virtual Result<std::vector<std::string>> all_gather(const std::string& mine,
                                                      Deadline deadline) = 0;
  // In place of all_gather(): gives the others these bytes and waits for nobody.
  virtual void decline(const std::string& mine) = 0;
};

}  // namespace rdmacoll
