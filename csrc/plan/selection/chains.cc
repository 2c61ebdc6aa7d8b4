// Chains: the formulas. Floor: plan/selection.
#include "csrc/plan/selection/chains.h"

#include <algorithm>
#include <bit>

namespace rdmacoll::chains {
namespace {

uint32_t rounds(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count - 1)); }
uint32_t depth(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count) - 1); }

// Ranks that have another island so far from them.
uint64_t crossings(const Islands& islands, uint64_t distance) {
  const uint32_t world = islands.world();
  uint64_t count = 0;
  for (uint32_t rank = 0; rank < world; ++rank) {
    count += !islands.share(rank, static_cast<uint32_t>((rank + distance) % world));
  }
  return count;
}

// Of some hops those that cross, given the sum of such ranks over the distances of all of them.
Chain crossing(const Islands& islands, uint32_t hops, uint64_t crossings) {
  const auto far = static_cast<uint32_t>((crossings + islands.world() - 1) / islands.world());
  return {std::min(hops, far), hops - std::min(hops, far)};
}

// So often hops of the distances 1, 2, 4, ...
Chain doubling(const Islands& islands, uint32_t times, uint32_t distances) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < distances; ++i) sum += crossings(islands, uint64_t{1} << i);
  return crossing(islands, times * distances, times * sum);
}

}  // namespace

// As many of its hops leave an island as neighbours are of different ones.
template <uint32_t times>
Chain around(const Islands& islands) {
  const uint32_t hops = times * (islands.world() - 1);
  return crossing(islands, hops, hops * crossings(islands, 1));
}
template Chain around<1>(const Islands&);
template Chain around<2>(const Islands&);

template <uint32_t times>
Chain down(const Islands& islands) {
  return doubling(islands, times, depth(islands.world()));
}
template Chain down<1>(const Islands&);
template Chain down<2>(const Islands&);

Chain halving_and_doubling(const Islands& islands) {
  const Chain halving = doubling(islands, 2, depth(islands.world()));
  if (std::has_single_bit(islands.world())) return halving;
  const Chain aside = crossing(islands, 2, 2 * crossings(islands, 1));
  return {halving.network + aside.network, halving.memory + aside.memory};
}

Chain in_rounds(const Islands& islands) { return doubling(islands, 1, rounds(islands.world())); }

Chain along_the_hosts(const Islands& islands) { return {islands.count() - 1, 2}; }

Chain in_rounds_of_hosts(const Islands& islands) { return {rounds(islands.count()), 2}; }

Chain through_the_hosts_and_back(const Islands& islands) {
  return {2 * rounds(islands.count()), 2};
}

}  // namespace rdmacoll::chains
