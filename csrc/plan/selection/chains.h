// Chains: how many messages of a plan follow each other, by layout. What select.cc says of each
// algorithm; a test measures it in the plans (forecast_test.cc).
// Floor: plan/selection. Thread: pure functions.
#pragma once

#include <cstdint>

#include "csrc/plan/islands.h"

namespace rdmacoll {

struct Chain {
  uint32_t network = 0;  // between islands
  uint32_t memory = 0;   // inside one
};

namespace chains {

// Plans of one level: so many messages, between any ranks.
template <uint32_t hops>
Chain of(const Islands& islands) {
  return islands.all_mapped() ? Chain{0, hops} : Chain{hops, 0};
}
// So many times around a ring, down a tree, through the rounds of a barrier. Of their hops as many
// leave an island as do on an average over the ranks.
template <uint32_t times>
Chain around(const Islands& islands);
template <uint32_t times>
Chain down(const Islands& islands);
Chain halving_and_doubling(const Islands& islands);
Chain in_rounds(const Islands& islands);

// Plans of two levels.
template <uint32_t network, uint32_t memory>
Chain through(const Islands&) {
  return {network, memory};
}
Chain along_the_hosts(const Islands& islands);
Chain in_rounds_of_hosts(const Islands& islands);
Chain through_the_hosts_and_back(const Islands& islands);

}  // namespace chains
}  // namespace rdmacoll
