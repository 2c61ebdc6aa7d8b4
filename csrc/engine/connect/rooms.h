// Rooms: the memory that this rank has for its peers in a group: its block, and further slabs when
// the rooms of the block are given away. Floor: engine/connect. Thread: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/engine/channel/layout.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/memory/region.h"

namespace rdmacoll {

class Rooms {
 public:
  // Makes the block. The transports outlive it.
  static Result<Rooms> make(Transports& transports, Layout layout);

  const Layout& layout() const { return layout_; }
  const Region& block() const { return slabs_.front(); }
  // Where a room is in its slab, and which slab that is.
  struct Place {
    uint16_t number;
    Region slab;
    PeerRoom room;
  };
  // A room that nobody has. For each peer there may be one.
  Result<Place> give();
  // The room of this number in any rank's slabs: by which slab it is, and where in that.
  uint32_t slab_of(uint32_t number) const { return number / layout_.rooms(); }
  PeerRoom room_of(uint32_t number) const { return layout_.room(number % layout_.rooms()); }

  // All slabs; they are not used any more.
  void release(Release how);

 private:
  Rooms(Transports& transports, Layout layout, Region block);

  Transports* transports_;
  Layout layout_;
  std::vector<Region> slabs_;  // the block first
  uint32_t next_ = kOwnRoom + 1;
};

}  // namespace rdmacoll
