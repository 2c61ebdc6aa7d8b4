// Surroundings: what a client has around it: time, news on its lines, the newest map, and lines to
// servers. ClientHost is the product's; tests put their own in its place.
// Floor: ps/client. Thread: the client's callers.
#pragma once

#include <cstdint>
#include <memory>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/work/work.h"
#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/wire/line.h"

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
  // Until something has come on a line, or so many milliseconds have passed, or more.
  virtual Status wait(int64_t most_ms, const InterruptCheck& interrupt) = 0;
  virtual Result<BucketMap> newest_map() = 0;
  // A new line to a server; nullptr: there is none now.
  virtual std::shared_ptr<Line> reach(ServerId server, const Limit& limit) = 0;
};

}  // namespace rdmacoll::ps
