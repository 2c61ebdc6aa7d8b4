// StillClock: time does not pass. Floor: tests. Thread: any.
#pragma once

#include <cstdint>

#include "csrc/base/clock.h"

namespace rdmacoll::ps {

class StillClock final : public Clock {
 public:
  int64_t now_ns() const override { return 1'000'000'000; }
};

}  // namespace rdmacoll::ps
