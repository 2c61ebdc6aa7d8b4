// Landings: lines of a session's memory into which this process reads words of the other's.
// Floor: engine/session. Thread: the driver.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "csrc/engine/session/session_memory.h"
#include "csrc/memory/region.h"

namespace rdmacoll {

class Landings {
 public:
  // own: this process's memory of the session.
  explicit Landings(const Region& own) : own_(own) {}

  // nullopt: all are in use.
  std::optional<LocalSlice> take() {
    if (free_ == 0) return std::nullopt;
    const auto line = static_cast<uint32_t>(std::countr_zero(free_));
    free_ &= free_ - 1;
    return LocalSlice{own_.base + landing_offset(line), kLineBytes, own_.id};
  }
  void give_back(const LocalSlice& landing) {
    const auto offset = static_cast<uint64_t>(landing.data - own_.base);
    free_ |= 1u << (offset - landing_offset(0)) / kLineBytes;
  }

 private:
  static_assert(kLandingLines < 32);

  Region own_;
  uint32_t free_ = (1u << kLandingLines) - 1;
};

}  // namespace rdmacoll
