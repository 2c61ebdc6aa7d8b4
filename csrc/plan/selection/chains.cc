// Chains: the formulas. Floor: plan/selection.
#include "csrc/plan/selection/chains.h"

#include <algorithm>
#include <bit>

namespace rdmacoll::chains {
namespace {

uint32_t rounds(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count - 1)); }
uint32_t depth(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count) - 1); }

Chain between_any(const Islands& islands, uint32_t hops) {
  return islands.all_mapped() ? Chain{0, hops} : Chain{hops, 0};
}

}  // namespace

// As many of its hops leave an island as neighbours are of different ones.
template <uint32_t times>
Chain around(const Islands& islands) {
  const uint32_t world = islands.world();
  const uint32_t hops = times * (world - 1);
  uint32_t crossings = 0;
  for (uint32_t rank = 0; rank < world; ++rank) {
    crossings += !islands.share(rank, (rank + 1) % world);
  }
  const auto far = static_cast<uint32_t>((uint64_t{hops} * crossings + world - 1) / world);
  return {std::min(hops, far), hops - std::min(hops, far)};
}
template Chain around<1>(const Islands&);
template Chain around<2>(const Islands&);

template <uint32_t times>
Chain down(const Islands& islands) {
  return between_any(islands, times * depth(islands.world()));
}
template Chain down<1>(const Islands&);
template Chain down<2>(const Islands&);

Chain halving_and_doubling(const Islands& islands) {
  const uint32_t aside = std::has_single_bit(islands.world()) ? 0 : 2;
  return between_any(islands, 2 * depth(islands.world()) + aside);
}

Chain in_rounds(const Islands& islands) { return between_any(islands, rounds(islands.world())); }

Chain along_the_hosts(const Islands& islands) { return {islands.count() - 1, 2}; }

Chain in_rounds_of_hosts(const Islands& islands) { return {rounds(islands.count()), 2}; }

}  // namespace rdmacoll::chains
