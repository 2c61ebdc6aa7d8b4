// Islands: which ranks of a group map each other's memory: a partition of them, equal on all. All
// that plans and choices know of where ranks are.
// Floor: plan. Thread: a value, immutable once built.
//
// Islands are numbered by their lowest ranks. Within one, ranks have places in ascending order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"

namespace rdmacoll {

class Islands {
 public:
  // All ranks in one; each on its own.
  static Islands together(uint32_t world);
  static Islands apart(uint32_t world);
  // By rank: ranks with equal keys are of one island, but one with an empty key is alone.
  static Islands by_key(const std::vector<std::string>& keys);
  // Of a shape (below), with the ranks of each island in a row. InvalidArgument says what a shape
  // is.
  static Result<Islands> of_shape(std::string_view shape);

  uint32_t world() const { return static_cast<uint32_t>(island_.size()); }
  uint32_t count() const { return static_cast<uint32_t>(first_.size()) - 1; }
  uint16_t of(uint32_t rank) const { return island_[rank]; }
  uint16_t place(uint32_t rank) const { return place_[rank]; }
  bool share(uint32_t a, uint32_t b) const { return island_[a] == island_[b]; }
  // Ascending.
  std::span<const uint16_t> members(uint32_t island) const {
    return {members_.data() + first_[island], first_[island + 1] - first_[island]};
  }
  uint32_t size(uint32_t island) const { return first_[island + 1] - first_[island]; }
  // Ranks of the islands before this one.
  uint32_t before(uint32_t island) const { return first_[island]; }
  uint32_t largest() const { return largest_; }

  // Host order: the ranks island after island, by place. Positions count in it.
  uint16_t position(uint32_t rank) const {
    return static_cast<uint16_t>(first_[island_[rank]] + place_[rank]);
  }
  const std::vector<uint16_t>& host_order() const { return members_; }
  bool in_host_order() const { return in_host_order_; }
  // Islands of the same sizes, whose ranks are in host order.
  Islands reordered() const;

  bool all_mapped() const { return count() == 1; }
  // Several, of which one has several ranks: plans of two levels make sense.
  bool has_levels() const { return count() > 1 && largest_ > 1; }
  bool operator==(const Islands&) const = default;
  // Sizes in the order of the islands: "2x4", "3+1", "2x4+1".
  std::string shape() const;

 private:
  explicit Islands(std::vector<uint16_t> island);

  std::vector<uint16_t> island_;   // by rank
  std::vector<uint16_t> place_;    // by rank
  std::vector<uint16_t> members_;  // island by island
  std::vector<uint32_t> first_;    // of an island in members_; one more at the end
  uint32_t largest_ = 1;
  bool in_host_order_ = true;
};

}  // namespace rdmacoll
