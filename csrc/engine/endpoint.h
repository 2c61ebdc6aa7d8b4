// Endpoint: a process's one door to the others: its transport, its progress, its groups.
// Floor: engine. Thread: any.
#pragma once

#include <memory>
#include <string>

#include "csrc/base/config.h"
#include "csrc/engine/bootstrap.h"
#include "csrc/engine/communicator.h"

namespace rdmacoll {

class Endpoint {
 public:
  // Opens the transports that the config asks for.
  static Result<std::shared_ptr<Endpoint>> open(const Config& config);
  ~Endpoint();

  // Makes a group of `size` ranks; all of them call it. One exchange over the bootstrap, then
  // connects to peers not yet known. timeout_ms bounds this call.
  Result<std::shared_ptr<Communicator>> create_communicator(int rank, int size, Bootstrap& bootstrap,
                                                            int64_t timeout_ms);

  // Fails everything in flight, leaves the peers, joins the progress thread. Idempotent.
  void shutdown();
  // For people: one line per peer, what was chosen and why.
  std::string describe() const;
};

}  // namespace rdmacoll
