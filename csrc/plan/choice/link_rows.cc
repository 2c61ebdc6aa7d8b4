// Rows of links: the table of costs. Floor: plan/choice.
#include "csrc/plan/choice/link_rows.h"

#include <algorithm>
#include <string>

#include "csrc/plan/words.h"

namespace rdmacoll {
namespace {

// A microsecond for a byte, a second for a message: no sum of a forecast (kMaxWorld ranks,
// some 100,000 tiles) leaves 64 bits.
constexpr uint64_t kMostGapPs = 1'000'000;
constexpr uint64_t kMostNs = 1'000'000'000;

struct Cost {
  std::string_view link;
  std::string_view name;  // with the sign that a value follows
  uint64_t most;
  int64_t& (*of)(Links& links);
};

constexpr Cost kCosts[] = {
    {"memory", "latency_ns=", kMostNs, [](Links& l) -> int64_t& { return l.memory.latency_ns; }},
    {"memory", "overhead_ns=", kMostNs, [](Links& l) -> int64_t& { return l.memory.overhead_ns; }},
    {"memory", "gap_ps=", kMostGapPs, [](Links& l) -> int64_t& { return l.memory.gap_ps; }},
    {"network", "latency_ns=", kMostNs, [](Links& l) -> int64_t& { return l.network.latency_ns; }},
    {"network", "overhead_ns=", kMostNs,
     [](Links& l) -> int64_t& { return l.network.overhead_ns; }},
    {"network", "gap_ps=", kMostGapPs, [](Links& l) -> int64_t& { return l.network.gap_ps; }},
    {"network", "host_gap_ps=", kMostGapPs,
     [](Links& l) -> int64_t& { return l.network.host_gap_ps; }},
};

std::string costs_of(std::string_view link) {
  std::string list;
  for (const Cost& cost : kCosts) {
    if (cost.link != link) continue;
    list +=
        (list.empty() ? "" : ", ") + std::string(cost.name) + "0 to " + std::to_string(cost.most);
  }
  return list;
}

}  // namespace

Status read_link_row(const std::vector<std::string_view>& words, Links* links) {
  const std::string_view link = words.size() > 1 ? words[1] : std::string_view();
  const bool known = std::any_of(std::begin(kCosts), std::end(kCosts),
                                 [&](const Cost& cost) { return cost.link == link; });
  if (!known) return wrong(quoted(link) + " is no link; give link memory or link network");
  for (size_t i = 2; i < words.size(); ++i) {
    const auto cost = std::find_if(std::begin(kCosts), std::end(kCosts), [&](const Cost& one) {
      return one.link == link && words[i].starts_with(one.name);
    });
    const auto value =
        cost == std::end(kCosts) ? std::nullopt : whole_number(words[i].substr(cost->name.size()));
    if (!value || *value > cost->most) {
      return wrong(quoted(words[i]) + " is no cost of link " + std::string(link) + "; give " +
                   costs_of(link));
    }
    cost->of(*links) = static_cast<int64_t>(*value);
  }
  return Status();
}

}  // namespace rdmacoll
