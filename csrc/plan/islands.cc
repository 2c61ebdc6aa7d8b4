// Islands: from keys or a shape. Floor: plan.
#include "csrc/plan/islands.h"

#include <algorithm>
#include <map>
#include <optional>

#include "csrc/base/limits.h"
#include "csrc/plan/words.h"

namespace rdmacoll {
namespace {

// "2x4", or "3", which is 1x3.
std::optional<std::pair<uint32_t, uint32_t>> term_of(std::string_view text) {
  const size_t x = text.find('x');
  const uint64_t count = x == text.npos ? 1 : whole_number(text.substr(0, x)).value_or(0);
  const uint64_t size = whole_number(x == text.npos ? text : text.substr(x + 1)).value_or(0);
  if (count == 0 || size == 0 || count > kMaxWorld || size > kMaxIsland) return std::nullopt;
  return std::pair{static_cast<uint32_t>(count), static_cast<uint32_t>(size)};
}

}  // namespace

Islands::Islands(std::vector<uint16_t> island) : island_(std::move(island)) {
  const uint32_t count = *std::max_element(island_.begin(), island_.end()) + 1u;
  first_.assign(count + 1, 0);
  for (const uint16_t index : island_) ++first_[index + 1];
  largest_ = *std::max_element(first_.begin(), first_.end());
  for (uint32_t index = 0; index < count; ++index) first_[index + 1] += first_[index];
  members_.resize(world());
  place_.resize(world());
  std::vector<uint16_t> seen(count, 0);
  for (uint32_t rank = 0; rank < world(); ++rank) {
    place_[rank] = seen[island_[rank]]++;
    members_[first_[island_[rank]] + place_[rank]] = static_cast<uint16_t>(rank);
  }
  in_host_order_ = std::is_sorted(members_.begin(), members_.end());
}

Islands Islands::reordered() const {
  std::vector<uint16_t> island = island_;
  std::sort(island.begin(), island.end());
  return Islands(std::move(island));
}

Islands Islands::together(uint32_t world) { return Islands(std::vector<uint16_t>(world, 0)); }

Islands Islands::apart(uint32_t world) { return by_key(std::vector<std::string>(world)); }

Islands Islands::by_key(const std::vector<std::string>& keys) {
  std::vector<uint16_t> island;
  std::map<std::string_view, uint16_t> known;
  uint16_t count = 0;
  for (const std::string& key : keys) {
    const auto [entry, is_new] = known.try_emplace(key, count);
    if (is_new || key.empty()) {
      island.push_back(count++);
    } else {
      island.push_back(entry->second);
    }
  }
  return Islands(std::move(island));
}

Result<Islands> Islands::of_shape(std::string_view shape) {
  std::vector<uint16_t> island;
  uint16_t count = 0;
  for (std::string_view rest = shape; true;) {
    const size_t end = std::min(rest.find('+'), rest.size());
    const auto term = term_of(rest.substr(0, end));
    if (!term || island.size() + uint64_t{term->first} * term->second > kMaxWorld) {
      return wrong(quoted(shape) +
                   " is no number of hosts and ranks; give 2x4 (2 hosts of 4 ranks), 3+1 (a "
                   "host of 3 and one of 1) or 2x4+1, with at most " +
                   std::to_string(kMaxIsland) + " ranks on a host and " +
                   std::to_string(kMaxWorld) + " in all");
    }
    for (uint32_t i = 0; i < term->first; ++i, ++count) {
      island.insert(island.end(), term->second, count);
    }
    if (end == rest.size()) return Islands(std::move(island));
    rest.remove_prefix(end + 1);
  }
}

std::string Islands::shape() const {
  std::string text;
  for (uint32_t island = 0, next; island < count(); island = next) {
    for (next = island + 1; next < count() && size(next) == size(island);) ++next;
    text += (text.empty() ? "" : "+");
    if (next - island > 1) text += std::to_string(next - island) + "x";
    text += std::to_string(size(island));
  }
  return text;
}

}  // namespace rdmacoll
