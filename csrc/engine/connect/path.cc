// Paths in words. Floor: engine/connect.
#include "csrc/engine/connect/path.h"

#include <algorithm>
#include <set>

namespace rdmacoll {
namespace {

std::string count(size_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

}  // namespace

std::string summarize(const std::map<uint32_t, Path>& paths, uint32_t world) {
  struct Reached {
    Transport* transport;
    size_t here = 0;
    size_t elsewhere = 0;
    std::set<std::string> hosts = {};
  };
  std::vector<Reached> by_transport;
  for (const auto& [rank, path] : paths) {
    auto found = std::ranges::find(by_transport, path.transport, &Reached::transport);
    if (found == by_transport.end()) {
      found = by_transport.insert(found, Reached{.transport = path.transport});
    }
    ++(path.same_host ? found->here : found->elsewhere);
    if (!path.same_host) found->hosts.insert(path.host);
  }
  std::string text;
  for (const Reached& reached : by_transport) {
    const std::string device = reached.transport->info().device;
    if (!text.empty()) text += "; ";
    text += reached.transport->info().name + (device.empty() ? "" : " (" + device + ")") + " to ";
    if (reached.here > 0) text += count(reached.here, "rank") + " of this host";
    if (reached.here > 0 && reached.elsewhere > 0) text += " and ";
    if (reached.elsewhere > 0) {
      text += count(reached.elsewhere, "rank") + " on " + count(reached.hosts.size(), "other host");
    }
  }
  const bool all = paths.size() + 1 >= world;
  return text + (all ? "" : "; to the others once they are needed");
}

}  // namespace rdmacoll
