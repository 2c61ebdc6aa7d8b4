// AgentBootstrap: the ranks of the world meet at their hosts' agents, over a unix socket; the
// agents exchange over MPI. The protocol is described in launcher/agent/rendezvous.py. Floor:
// torch_ext. Thread: the one that makes the group.
#pragma once

#include <string>

#include "csrc/engine/connect/bootstrap.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll::torch_ext {

class AgentBootstrap final : public Bootstrap {
 public:
  // address: a path, or @ and a name of the abstract namespace.
  AgentBootstrap(std::string address, int rank, int world, InterruptCheck interrupt);
  Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline deadline) override;
  void decline(const std::string& mine) override;
  // The job's, of which the agents have agreed. A rank may ask at any time.
  Result<std::string> secret(Deadline deadline);

 private:
  std::string message(const char* magic, const std::string& mine) const;

  const std::string address_;
  const int rank_;
  const int world_;
  const InterruptCheck interrupt_;
};

}  // namespace rdmacoll::torch_ext
