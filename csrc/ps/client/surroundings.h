// Surroundings: what a client has around it: time, news on its connections, the newest map, and
// connections to servers. ClientHost is the product's; tests put their own in its place. Floor:
// ps/client. Thread: the client's callers.
#pragma once

#include <cstdint>
#include <memory>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/work/work.h"
#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

// How long a caller waits, and what may interrupt it.
struct Limit {
  Deadline deadline;
  InterruptCheck interrupt;
};

class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual const Clock& clock() const = 0;
  // Until something has come on a connection, or so many milliseconds have passed, or more.
  virtual Status wait(int64_t most_ms, const InterruptCheck& interrupt) = 0;
  virtual Result<BucketMap> newest_map() = 0;
  // A new connection to a server. PeerFailed: it has ended, as far as is known; another status:
  // there is none now.
  virtual Result<std::shared_ptr<Connection>> reach(ServerId server, const Limit& limit) = 0;
};

}  // namespace rdmacoll::ps
