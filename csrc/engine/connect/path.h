// Path: how this process reaches another, and why so. What was chosen when they met.
// Floor: engine/connect. Thread: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "csrc/transport/transport.h"

namespace rdmacoll {

struct Path {
  Transport* transport = nullptr;
  PeerId peer = 0;
  bool same_host = true;
  std::string host{};    // the peer's id of it
  std::string reason{};  // for people, in a few words: "same host"
  // From its address (transports_heap.cc): its heap, and how large a heap of another it maps.
  std::string heap{};
  std::string largest_heap{};
};

// For people: "shm to 3 ranks of this host; verbs (mlx5_0 port 1) to 4 ranks on 1 other host". The
// paths by rank, to those of the group's that are met.
std::string summarize(const std::map<uint32_t, Path>& paths, uint32_t world);

}  // namespace rdmacoll
