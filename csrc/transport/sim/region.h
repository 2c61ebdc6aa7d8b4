// SimRegion, and SimShadow: what another rank sees of it when memory is mapped.
// Floor: transport/sim. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/memory/region.h"
#include "csrc/memory/shared_segment.h"
#include "csrc/transport/lease.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

struct SimRegion {
  SimRegion(RegionId region, Generation generation, const RegionMemory& of)
      : id(region),
        bytes(of.bytes),
        memory(of.segment),
        offset(of.offset),
        access(of.access),
        lease{.generation = generation} {}

  // Of the signals issued to a line.
  struct LineState {
    uint64_t counter = 0;
    int64_t delivered_at_ns = 0;
  };

  const RegionId id;
  const uint64_t bytes;
  const std::shared_ptr<SharedSegment> memory;
  const uint64_t offset = 0;  // in the memory
  const Access access;
  std::map<uint64_t, LineState> signalled;
  Lease lease;
  bool withdrawn = false;
  bool is_cut_off = false;

  std::byte* base() const { return memory->data() + offset; }
  bool holds(uint64_t offset, uint64_t count) const {
    return Region{id, base(), bytes}.holds(offset, count);
  }
};

// A viewer's copy of a region. The owner's stores show in it late and in any order; the viewer's
// own are found by comparison with what it was last made equal to.
class SimShadow {
 public:
  explicit SimShadow(std::shared_ptr<SimRegion> region);

  std::byte* base() { return reinterpret_cast<std::byte*>(view_.data()); }
  SimRegion& region() const { return *region_; }

  // Shows what the owner has now; bytes that the viewer stored and the owner has not yet got stay.
  void refresh(uint64_t offset, uint64_t bytes);

  struct Store {
    uint64_t offset = 0;
    std::vector<std::byte> data;
  };
  // What the viewer stored since the last call; each must be landed() when the owner has it.
  std::vector<Store> take_stores();
  void landed(uint64_t offset, uint64_t bytes);

 private:
  bool stored(uint64_t i) { return base()[i] != seen_[i]; }

  std::shared_ptr<SimRegion> region_;
  std::vector<Line> view_;           // lines only for their alignment
  std::vector<std::byte> seen_;      // the view without the viewer's stores that are not yet taken
  std::vector<uint32_t> in_flight_;  // per byte: stores taken and not landed
};

}  // namespace rdmacoll
