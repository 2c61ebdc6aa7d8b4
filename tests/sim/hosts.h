// Worlds of several hosts, drawn by chance. Floor: tests. Thread: one.
#pragma once

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/sim_world.h"

namespace rdmacoll {

// Host by rank; every host has a rank, and some host several.
inline std::vector<int> random_hosts(std::mt19937_64& random) {
  const size_t count = 2 + random() % 3;
  const size_t world = count + 1 + random() % (8 - count);
  std::vector<int> hosts(world);
  switch (random() % 4) {
    case 0:  // blocks, as even as can be
      for (size_t r = 0; r < world; ++r) hosts[r] = static_cast<int>(r * count / world);
      break;
    case 1:
      for (size_t r = 0; r < world; ++r) hosts[r] = static_cast<int>(r % count);
      break;
    default:  // any sizes, in a row or anyhow
      for (size_t r = 0; r < world; ++r) {
        hosts[r] = static_cast<int>(r < count ? r : random() % count);
      }
      std::sort(hosts.begin(), hosts.end());
      if (random() % 2 == 0) std::shuffle(hosts.begin(), hosts.end(), random);
  }
  return hosts;
}

inline std::vector<int> ranks_of_host(const std::vector<int>& hosts, int host) {
  std::vector<int> ranks;
  for (int r = 0; r < static_cast<int>(hosts.size()); ++r) {
    if (hosts[static_cast<size_t>(r)] == host) ranks.push_back(r);
  }
  return ranks;
}

inline std::string text_of(const std::vector<int>& hosts) {
  std::string text = "hosts";
  for (const int host : hosts) text += " " + std::to_string(host);
  return text;
}

// How its ranks go about it.
inline Config random_config_on_hosts(std::mt19937_64& random) {
  constexpr const char* kAlgorithms[] = {"auto", "rails",  "leaders",          "rails",
                                         "ring", "direct", "halving_doubling", "leaders"};
  Config config = small_heaps();
  config.algorithm = kAlgorithms[random() % std::size(kAlgorithms)];
  if (random() % 4 == 0) config.heap_bytes = 0;
  return config;
}

enum class Where { OnOneHostOrMany, OnHosts };

// Where the ranks of a world are, and how they go about it.
inline Config random_ranks(std::mt19937_64& random, Where where, SimOptions* options) {
  if (where == Where::OnHosts) {
    options->hosts = random_hosts(random);
    options->world = static_cast<int>(options->hosts.size());
    return random_config_on_hosts(random);
  }
  options->world = 2 + static_cast<int>(random() % 6);
  options->mapped = random() % 2 == 0;
  return small_heaps();
}

}  // namespace rdmacoll
