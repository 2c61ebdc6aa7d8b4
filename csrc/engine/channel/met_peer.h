// MetPeer: a rank that this one has met: the link to it, and the ports of its channels.
// Floor: engine/channel. Thread: the link any, the ports the driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "csrc/engine/channel/layout.h"
#include "csrc/engine/channel/link.h"
#include "csrc/engine/channel/port.h"

namespace rdmacoll {

struct MetPeer {
  // index: how many were met before.
  MetPeer(const Layout& layout, uint32_t its_rank, uint32_t met_before, const Link& its_link)
      : MetPeer(layout, its_rank, met_before, its_link, std::make_index_sequence<kChannels>()) {}

  const uint32_t rank;
  const uint32_t index;
  const Link link;
  std::array<Port, kChannels> ports;  // by channel; in place: each message looks at some

 private:
  template <size_t... kChannel>
  MetPeer(const Layout& layout, uint32_t its_rank, uint32_t met_before, const Link& its_link,
          std::index_sequence<kChannel...>)
      : rank(its_rank),
        index(met_before),
        link(its_link),
        ports{Port(layout.place(kChannel), link, kChannel)...} {}
};

}  // namespace rdmacoll
