// Symbols: hash-consing.
#include "csrc/plan/verify/symbols.h"

#include <bit>

namespace rdmacoll {
namespace {

constexpr uint32_t kMaxVerifiedRanks = 64;  // a bit each

}  // namespace

Value Symbols::leaf(uint16_t rank, uint64_t unit) {
  const auto [entry, is_new] = leaves_.try_emplace({rank, unit}, static_cast<Value>(nodes_.size()));
  if (is_new) nodes_.push_back({unit, uint64_t{1} << rank, false, rank});
  return entry->second;
}

Value Symbols::fold(const std::vector<Value>& sources) {
  const auto known = folds_.find(sources);
  if (known != folds_.end()) return known->second;
  Node sum{nodes_[sources.front()].unit, 0, true, 0};
  std::vector<uint32_t> orders;
  for (Value source : sources) {
    const Node& node = nodes_[source];
    if (node.unit != sum.unit) return refuse("folds different elements");
    if ((node.ranks & sum.ranks) != 0) return refuse("counts a contribution twice");
    if (complete(source)) return refuse("folds a result that is complete");
    sum.ranks |= node.ranks;
    orders.push_back(node.order);
  }
  // Those of leaves are their ranks.
  const auto next = kMaxVerifiedRanks + static_cast<uint32_t>(orders_.size());
  sum.order = orders_.try_emplace(std::move(orders), next).first->second;
  const Value value = static_cast<Value>(nodes_.size());
  nodes_.push_back(sum);
  folds_.emplace(sources, value);
  return value;
}

bool Symbols::in_rank_order(Value value) {
  std::vector<Value> contributions;
  for (uint16_t rank = 0; rank < std::popcount(everybody_); ++rank) {
    contributions.push_back(leaf(rank, unit(value)));
  }
  const auto known = folds_.find(contributions);
  return known != folds_.end() && known->second == value;
}

Value Symbols::refuse(const char* why) {
  why_ = why;
  return kNothing;
}

}  // namespace rdmacoll
