// Which device, port and GID a process uses: functions of plain values, which need no device.
// Device::open() (device.h) finds the values and does what is chosen here.
// Floor: transport/verbs/device. Thread: any; values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/transport/verbs/abi/verbs.h"

namespace rdmacoll::verbs {

// RDMACOLL_HCA, in the syntax of NCCL_IB_HCA: names separated by commas, each the beginning of a
// device's name ("mlx5" is all mlx5_0, mlx5_1, ...) and, after a colon, one port of it. "=" in
// front of the list: whole names. "^" in front of that: all but these.
class HcaList {
 public:
  // InvalidArgument says what is wrong with the text.
  static Result<HcaList> parse(const std::string& text);

  // Port 0: whether any port of the device may be admitted.
  bool admits(const std::string& device, int port) const;

 private:
  struct Entry {
    std::string name;
    int port = 0;  // 0: any
  };
  bool names(const Entry& entry, const std::string& device) const;

  bool excludes_ = false;
  bool whole_names_ = false;
  std::vector<Entry> entries_;
};

// A port that was found, or a whole device (port 0) that was not looked into.
struct Candidate {
  std::string device;
  int port = 0;
  int distance = 0;     // nearness.h
  std::string problem;  // why it cannot be used; empty: it can
};

// Why a port in this state cannot be used, and what to do about it; empty: it can.
std::string port_problem(const ibv_port_attr& port);

// The index of the candidate to use: of the nearest usable ones, that of the local rank, so that
// the ranks of a host spread over them. Unsupported lists what is wrong with each.
Result<size_t> choose_candidate(const std::vector<Candidate>& candidates, int64_t local_rank);

// For people: why that one, and why none of the others.
std::string explain_choice(const std::vector<Candidate>& candidates, size_t chosen);

// The GID to use, out of a port's: on Ethernet RoCE v2 before v1 and, within these, an IPv4
// address before an IPv6 one before a link-local one; on InfiniBand the first. `wanted` (if not -1)
// is the index of another one; InvalidArgument lists those there are.
Result<ibv_gid_entry> choose_gid(const std::vector<ibv_gid_entry>& gids, bool is_ethernet,
                                 int64_t wanted, const std::string& port);

// "10.0.0.1" or "fe80::1".
std::string text_of(const ibv_gid& gid);

}  // namespace rdmacoll::verbs
