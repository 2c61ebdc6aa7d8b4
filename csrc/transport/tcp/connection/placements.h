// Placements: memory of this process that is no region, each piece lent to one peer for a while.
// Frames name it by a slot and by which use of the slot they mean, so what comes late is known, and
// dropped. Floor: transport/tcp/connection. Thread: the driver.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "csrc/memory/region.h"
#include "csrc/transport/tcp/connection/address.h"
#include "csrc/transport/transport.h"

namespace rdmacoll::tcp {

// As a region's id in frames and slices: behind those of regions.
inline constexpr RegionId kFirstPlacement = 1u << 16;
static_assert(kFirstPlacement > kMaxRegions);

inline bool is_placement(RegionId id) {
  return id >= kFirstPlacement && id < kFirstPlacement + kPlacements;
}

class Placements {
 public:
  // None: all slots are taken.
  Placement begin(PeerId peer, std::byte* data, uint64_t bytes) {
    const auto free =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.taken; });
    if (free == slots_.end()) return {};
    *free = {true, peer, free->use + 1, data, bytes};
    const auto slot = static_cast<uint32_t>(free - slots_.begin());
    return {kFirstPlacement + slot, encode(PlacementKey{slot, free->use, bytes})};
  }
  void end(uint32_t id) { slots_[id - kFirstPlacement].taken = false; }

  enum class Found { Live, Over, Beyond };
  // Where this use of the slot has these bytes. Over: it has ended, or was never this peer's.
  // Beyond: it has none there.
  Found find(PeerId peer, RegionId id, uint32_t use, uint64_t offset, uint64_t bytes,
             std::byte** at) const {
    const Slot& slot = slots_[id - kFirstPlacement];
    if (!slot.taken || slot.peer != peer || slot.use != use) return Found::Over;
    if (offset > slot.bytes || bytes > slot.bytes - offset) return Found::Beyond;
    *at = slot.data + offset;
    return Found::Live;
  }

 private:
  struct Slot {
    bool taken = false;
    PeerId peer = 0;
    uint32_t use = 0;
    std::byte* data = nullptr;
    uint64_t bytes = 0;
  };
  std::array<Slot, kPlacements> slots_;
};

}  // namespace rdmacoll::tcp
