// Contract: the tests of transport.h's contract (transport_contract_test.cc), for each transport to
// instantiate in a file of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "tests/contract/cluster.h"

namespace rdmacoll {

class Contract : public ::testing::TestWithParam<std::tuple<const Kind*, int>> {
 protected:
  const Kind& kind() const { return *std::get<0>(GetParam()); }
  int world() const { return std::get<1>(GetParam()); }
  // With so many seeds at most.
  void run(uint64_t seeds, const Body& body) {
    for (uint64_t seed = 1; seed <= std::min(seeds, kind().seeds) && !HasFailure(); ++seed) {
      kind().run(kind(), world(), seed, body);
    }
  }
};

inline std::string contract_case(
    const ::testing::TestParamInfo<std::tuple<const Kind*, int>>& info) {
  return std::get<0>(info.param)->name + std::to_string(std::get<1>(info.param));
}

}  // namespace rdmacoll
