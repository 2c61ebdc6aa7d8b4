// MetPeer: a rank that this one has met: the link to it, and the ports of its channels.
// Floor: engine/channel. Thread: the link any, the ports the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "csrc/engine/channel/layout.h"
#include "csrc/engine/channel/link.h"
#include "csrc/engine/channel/port.h"

namespace rdmacoll {

struct MetPeer {
  // index: how many were met before.
  MetPeer(const Layout& layout, uint32_t its_rank, uint32_t met_before, const Link& its_link)
      : rank(its_rank), index(met_before), link(its_link) {
    ports.reserve(kChannels);
    for (uint8_t channel = 0; channel < kChannels; ++channel) {
      ports.emplace_back(layout, link, channel);
    }
  }

  const uint32_t rank;
  const uint32_t index;
  const Link link;
  std::vector<Port> ports;  // by channel
};

}  // namespace rdmacoll
