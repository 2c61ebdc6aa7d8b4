// Link: how one rank of a group reaches another, and where what passes between them lies.
// Floor: engine/channel. Thread: a value.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/engine/channel/layout.h"
#include "csrc/memory/region.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// Without a transport it is a rank's link to itself.
struct Link {
  Transport* transport = nullptr;
  PeerId peer = 0;
  Region block{};       // the peer's; without a base, this rank cannot load from it and store to it
  Region slab{};        // the peer's, in which this rank's room is: the block, or another region
  PeerRoom room{};      // this rank's
  Region own_slab{};    // this rank's, in which the peer's room is
  PeerRoom own_room{};  // the peer's
  std::span<const std::byte> heap{};  // the peer's, if it is mapped
  bool maps_mine = true;              // whether the peer, if it maps memory, maps this rank's heap

  bool is_mapped() const { return block.base != nullptr; }
};

}  // namespace rdmacoll
