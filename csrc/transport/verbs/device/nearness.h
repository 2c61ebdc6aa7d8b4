// Nearness: how far a device is from the cores that the calling thread may run on, from sysfs.
// Floor: transport/verbs/device. Thread: any; a value.
#pragma once

#include <string>
#include <vector>

namespace rdmacoll::verbs {

class Nearness {
 public:
  // In the kernel's measure of distances between NUMA nodes, which begins at 10 for one's own.
  static constexpr int kOwnNode = 10;
  static constexpr int kUnknown = kOwnNode + 1;  // after the local devices, before the far ones

  // The cores as in "0-3,8"; `sysfs` is /sys but in tests.
  Nearness(std::string cores, std::string sysfs);
  static Nearness of_calling_thread();

  int distance_of(const std::string& device) const;

 private:
  struct Node {
    int id;
    bool mine;                   // has cores that the thread may run on
    std::vector<int> distances;  // to all nodes, in the order of their ids
  };
  int node_of(const std::string& device) const;

  std::string sysfs_;
  std::vector<Node> nodes_;  // in the order of their ids
};

}  // namespace rdmacoll::verbs
