// Options: what a comparison is told. Floor: benchmarks. Thread: the parent's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "benchmarks/transfer/host.h"

namespace rdmacoll::bench {

struct Options {
  // [between PID/ADDRESS PID/ADDRESS] [reads] [rounds [bytes ...]]; nullopt, once it has said why:
  // they make no sense.
  static std::optional<Options> of(int argc, char** argv);

  // The sender's and the receiver's, apart where they have holders.
  std::array<Host, 2> hosts{};
  // The receiver reads all of the tensor before it answers.
  bool reads = false;
  int rounds = 15;
  std::vector<uint64_t> sizes_bytes{};

  bool is_within_a_host() const { return hosts[0].holder == 0; }
};

}  // namespace rdmacoll::bench
