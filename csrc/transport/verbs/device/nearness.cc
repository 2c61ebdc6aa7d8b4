// Nearness, out of sysfs' lists of NUMA nodes. Floor: transport/verbs/device.
#include "csrc/transport/verbs/device/nearness.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace rdmacoll::verbs {
namespace {

struct Range {
  int first;
  int last;
};

// Ranges out of "0-3,8"; none when it is no list.
std::vector<Range> ranges_of(const std::string& list) {
  std::vector<Range> ranges;
  std::istringstream in(list);
  for (Range range{}; in >> range.first; in.ignore(1, ',')) {
    range.last = range.first;
    if (in.peek() == '-' && !(in.ignore() >> range.last)) break;
    ranges.push_back(range);
  }
  return ranges;
}

bool overlap(const std::vector<Range>& some, const std::vector<Range>& others) {
  return std::any_of(some.begin(), some.end(), [&](const Range& a) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Range& b) { return a.first <= b.last && b.first <= a.last; });
  });
}

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

}  // namespace

Nearness::Nearness(std::string cores, std::string sysfs) : sysfs_(std::move(sysfs)) {
  const std::string folder = sysfs_ + "/devices/system/node/";
  const std::vector<Range> allowed = ranges_of(cores);
  for (const Range& range : ranges_of(first_line(folder + "online"))) {
    for (int id = range.first; id <= range.last; ++id) {
      const std::string node = folder + "node" + std::to_string(id);
      Node made{id, overlap(allowed, ranges_of(first_line(node + "/cpulist"))), {}};
      std::istringstream distances(first_line(node + "/distance"));
      for (int distance; distances >> distance;) made.distances.push_back(distance);
      nodes_.push_back(std::move(made));
    }
  }
}

Nearness Nearness::of_calling_thread() {
  static constexpr char kKey[] = "Cpus_allowed_list:";
  std::ifstream status("/proc/thread-self/status");
  std::string line;
  while (std::getline(status, line) && !line.starts_with(kKey)) {
  }
  return Nearness(line.substr(std::min(line.size(), sizeof(kKey) - 1)), "/sys");
}

int Nearness::node_of(const std::string& device) const {
  std::istringstream text(first_line(sysfs_ + "/class/infiniband/" + device + "/device/numa_node"));
  int node = -1;
  return text >> node ? node : -1;
}

int Nearness::distance_of(const std::string& device) const {
  const int home = node_of(device);
  const auto place =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.id == home; });
  if (place == nodes_.end()) return kUnknown;
  const auto index = static_cast<size_t>(place - nodes_.begin());
  int nearest = -1;
  for (const Node& node : nodes_) {
    if (!node.mine || index >= node.distances.size()) continue;
    if (nearest < 0 || node.distances[index] < nearest) nearest = node.distances[index];
  }
  return nearest < 0 ? kUnknown : nearest;
}

}  // namespace rdmacoll::verbs
