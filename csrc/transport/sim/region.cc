// SimShadow: compares line by line, then byte by byte. Floor: transport/sim.
#include "csrc/transport/sim/region.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rdmacoll {

SimShadow::SimShadow(std::shared_ptr<SimRegion> region)
    : region_(std::move(region)),
      view_(region_->bytes / kLineBytes + 1),
      seen_(region_->bytes),
      in_flight_(region_->bytes) {
  refresh(0, region_->bytes);
}

void SimShadow::refresh(uint64_t offset, uint64_t bytes) {
  const std::byte* owner = region_->base();
  const uint64_t end = offset + bytes;
  for (uint64_t i = offset; i < end;) {
    const uint64_t chunk = std::min(i + kLineBytes, end);
    if (std::memcmp(owner + i, seen_.data() + i, chunk - i) == 0) i = chunk;
    for (; i < chunk; ++i) {
      if (!stored(i) && in_flight_[i] == 0) base()[i] = seen_[i] = owner[i];
    }
  }
}

std::vector<SimShadow::Store> SimShadow::take_stores() {
  std::vector<Store> stores;
  for (uint64_t i = 0; i < region_->bytes;) {
    const uint64_t chunk = std::min(i + kLineBytes, region_->bytes);
    if (std::memcmp(base() + i, seen_.data() + i, chunk - i) == 0) i = chunk;
    while (i < chunk && !stored(i)) ++i;
    if (i == chunk) continue;
    Store store;
    store.offset = i;
    for (; i < region_->bytes && stored(i); ++i) {
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
