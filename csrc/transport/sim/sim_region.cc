// SimShadow: byte by byte, as regions of simulations are small. Floor: transport/sim.
#include "csrc/transport/sim/sim_region.h"

#include <cstring>
#include <utility>

namespace rdmacoll {

SimShadow::SimShadow(std::shared_ptr<SimRegion> region)
    : region_(std::move(region)),
      view_(region_->lines.size()),
      seen_(region_->bytes),
      in_flight_(region_->bytes) {
  refresh(0, region_->bytes);
}

void SimShadow::refresh(uint64_t offset, uint64_t bytes) {
  const std::byte* owner = region_->base();
  if (bytes == 0 || std::memcmp(owner + offset, seen_.data() + offset, bytes) == 0) return;
  for (uint64_t i = offset; i < offset + bytes; ++i) {
    if (!stored(i) && in_flight_[i] == 0) base()[i] = seen_[i] = owner[i];
  }
}

std::vector<SimShadow::Store> SimShadow::take_stores() {
  std::vector<Store> stores;
  const uint64_t size = region_->bytes;
  if (size == 0 || std::memcmp(base(), seen_.data(), size) == 0) return stores;
  for (uint64_t i = 0; i < size;) {
    if (!stored(i)) {
      ++i;
      continue;
    }
    Store store;
    store.offset = i;
    for (; i < size && stored(i); ++i) {
      store.data.push_back(base()[i]);
      seen_[i] = base()[i];
      ++in_flight_[i];
    }
    stores.push_back(std::move(store));
  }
  return stores;
}

void SimShadow::landed(uint64_t offset, uint64_t bytes) {
  for (uint64_t i = offset; i < offset + bytes; ++i) --in_flight_[i];
}

}  // namespace rdmacoll
