// Staging: memory of this process that its device knows, for reads and writes of memory that the
// device does not: they are copied through it. Where peers' memory is mapped, or the transport
// reads any memory, there is none.
// Floor: engine/session. Thread: the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/memory/region.h"

namespace rdmacoll {

class Staging {
 public:
  static constexpr uint64_t kPlaceBytes = 256 * 1024;
  static constexpr uint32_t kPlaces = 4;
  static constexpr uint64_t kBytes = kPlaces * kPlaceBytes;

  Staging() = default;
  // kBytes from there on, in a region of this process.
  explicit Staging(const LocalSlice& memory) : memory_(memory) {
    for (uint32_t place = 0; place < kPlaces; ++place) free_.push_back(place);
  }

  bool exists() const { return memory_.data != nullptr; }
  // nullopt: all are in use.
  std::optional<uint32_t> take() {
    if (free_.empty()) return std::nullopt;
    const uint32_t place = free_.back();
    free_.pop_back();
    return place;
  }
  void give_back(uint32_t place) { free_.push_back(place); }
  LocalSlice at(uint32_t place, uint64_t bytes) const {
    return {memory_.data + place * kPlaceBytes, bytes, memory_.region};
  }

 private:
  LocalSlice memory_{};
  std::vector<uint32_t> free_;
};

}  // namespace rdmacoll
