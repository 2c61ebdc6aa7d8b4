// Rooms. Floor: engine/connect. Thread: see rooms.h.
#include "csrc/engine/connect/rooms.h"

#include <utility>

#include "csrc/base/check.h"

namespace rdmacoll {

Result<Rooms> Rooms::make(Transports& transports, Layout layout) {
  auto block = transports.create_region(layout.block_bytes());
  if (!block.ok()) return block.status();
  return Rooms(transports, std::move(layout), block.value());
}

Rooms::Rooms(Transports& transports, Layout layout, Region block)
    : transports_(&transports), layout_(std::move(layout)), slabs_{block} {}

Result<Rooms::Place> Rooms::give() {
  const uint32_t number = next_;
  RDMACOLL_CHECK(number <= UINT16_MAX);
  if (slab_of(number) == slabs_.size()) {
    auto slab = transports_->create_region(layout_.slab_bytes());
    if (!slab.ok()) return slab.status();
    slabs_.push_back(slab.value());
  }
  ++next_;
  return Place{static_cast<uint16_t>(number), slabs_[slab_of(number)], room_of(number)};
}

void Rooms::release(Release how) {
  for (const Region& slab : slabs_) transports_->release_region(slab.id, how);
}

}  // namespace rdmacoll
