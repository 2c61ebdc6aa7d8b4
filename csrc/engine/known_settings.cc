// The list, and how near a name is to another. Floor: engine.
#include "csrc/engine/known_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "csrc/base/printable.h"

namespace rdmacoll {
namespace {

constexpr std::string_view kOurs = "RDMACOLL_";
constexpr size_t kMostNameBytes = 100;
constexpr double kNear = 0.6;  // names that are less alike are no typos of each other

// Also those of the launcher, the build and the tests.
constexpr auto kKnown = std::to_array<std::string_view>({
    "RDMACOLL_AGENT",
    "RDMACOLL_ALGO",
    "RDMACOLL_AS_GLOO",
    "RDMACOLL_BLOCK_BYTES",
    "RDMACOLL_CONNECT_TIMEOUT_MS",
    "RDMACOLL_DAY",
    "RDMACOLL_DETERMINISTIC",
    "RDMACOLL_DUMP_DIR",
    "RDMACOLL_ELASTIC",
    "RDMACOLL_FLIGHT_RECORDS",
    "RDMACOLL_GID_INDEX",
    "RDMACOLL_HCA",
    "RDMACOLL_HEAP_BYTES",
    "RDMACOLL_HOST_ID",
    "RDMACOLL_IB_MTU",
    "RDMACOLL_IB_PORT",
    "RDMACOLL_IB_QPS",
    "RDMACOLL_IB_RETRY_CNT",
    "RDMACOLL_IB_SL",
    "RDMACOLL_IB_TC",
    "RDMACOLL_IB_TIMEOUT",
    "RDMACOLL_LOCAL_VERSION",
    "RDMACOLL_LOG",
    "RDMACOLL_MOUNT",
    "RDMACOLL_NIGHTLY",
    "RDMACOLL_PRELOAD",
    "RDMACOLL_REQUIRE",
    "RDMACOLL_SECRET_FILE",
    "RDMACOLL_SERVER",
    "RDMACOLL_SERVERS",
    "RDMACOLL_SERVER_HOSTS",
    "RDMACOLL_SERVER_MEMORY",
    "RDMACOLL_SERVER_REPLICAS",
    "RDMACOLL_SERVER_START",
    "RDMACOLL_SIM_FIRST",
    "RDMACOLL_SIM_SEED",
    "RDMACOLL_SIM_SEEDS",
    "RDMACOLL_SOCKET_IFNAME",
    "RDMACOLL_SPIN_US",
    "RDMACOLL_STALL_TIMEOUT_MS",
    "RDMACOLL_STORES",
    "RDMACOLL_TCP_PORTS",
    "RDMACOLL_TCP_STREAMS",
    "RDMACOLL_TCP_TIMEOUT_MS",
    "RDMACOLL_TIMELINE",
    "RDMACOLL_TRANSPORT",
    "RDMACOLL_TUNING",
    "RDMACOLL_ZERO_COPY_LOCAL_BYTES",
    "RDMACOLL_ZERO_COPY_REMOTE_BYTES",
});

// How much of two names is alike, 0 to 1: what is left of both when as little as possible is taken
// out of each.
double likeness(std::string_view one, std::string_view other) {
  std::vector<size_t> row(other.size() + 1, 0);  // of the beginnings of one, and each of the other
  for (const char letter : one) {
    size_t diagonal = 0;
    for (size_t j = 0; j < other.size(); ++j) {
      const size_t longest = letter == other[j] ? diagonal + 1 : std::max(row[j], row[j + 1]);
      diagonal = std::exchange(row[j + 1], longest);
    }
  }
  return 2.0 * static_cast<double>(row.back()) / static_cast<double>(one.size() + other.size());
}

// Empty if none is near.
std::string_view nearest_to(const std::string& name) {
  std::string upper = name.substr(kOurs.size());
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  const auto likeness_of = [&](std::string_view known) {
    return likeness(upper, known.substr(kOurs.size()));
  };
  const std::string_view nearest = *std::ranges::max_element(kKnown, {}, likeness_of);
  return likeness_of(nearest) < kNear ? std::string_view{} : nearest;
}

}  // namespace

std::span<const std::string_view> known_settings() { return kKnown; }

std::vector<std::string> about_unknown_settings(const Settings& settings) {
  std::vector<std::string> lines;
  for (const std::string& given : settings.names()) {
    if (!given.starts_with(kOurs) || std::ranges::find(kKnown, given) != kKnown.end()) continue;
    const std::string name = printable(given, kMostNameBytes);
    const std::string_view nearest = nearest_to(name);
    lines.push_back(name + " is no setting of rdmacoll" +
                    (nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?") +
                    " (docs/ENVIRONMENT.md lists all)");
  }
  return lines;
}

}  // namespace rdmacoll
