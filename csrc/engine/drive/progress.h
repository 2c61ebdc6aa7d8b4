// Progress: what drives the engine, and how a wait waits, as the engine sees it. ThreadProgress is
// the product's; the simulator puts its own in its place. A shrinking pauses between its turns by
// itself. Floor: engine/drive. Thread: any.
#pragma once

#include <cstdint>
#include <span>

#include "csrc/base/status.h"
#include "csrc/engine/drive/driven.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll {

class Progress {
 public:
  virtual ~Progress() = default;
  virtual void add(Driven& one) = 0;
  // Closes it and forgets it; nothing drives it afterwards.
  virtual void remove(Driven& one) = 0;
  struct News {
    // The work that was submitted, where it ends within microseconds if the other ranks are there.
    const Work* short_work = nullptr;
    bool caller_waits = false;  // see CallOptions::waits
  };
  // Something was submitted, or a group is to fail.
  virtual void notify(const News& news) = 0;
  // See Communicator::wait_all.
  virtual Status wait(std::span<Work* const> works, int64_t timeout_ms,
                      const InterruptCheck& interrupt) = 0;
};

}  // namespace rdmacoll
