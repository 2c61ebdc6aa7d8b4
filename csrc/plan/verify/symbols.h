// Symbols: the values of the symbolic run. Equal expressions have equal values.
// Floor: plan/verify, behind verify.h only.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <utility>
#include <vector>

namespace rdmacoll {

using Value = uint32_t;
inline constexpr Value kNothing = 0;  // what nobody wrote

// Which byte of an operation a contribution is for.
inline uint64_t unit_of(uint64_t operation, uint64_t block, uint64_t offset) {
  return operation << 48 | block << 32 | offset;
}

class Symbols {
 public:
  explicit Symbols(uint16_t world) : everybody_(~uint64_t{0} >> (64 - world)), nodes_(1) {}

  Value leaf(uint16_t rank, uint64_t unit);
  // Folds left to right. kNothing: the sources do not go together, and why() says it.
  Value fold(const std::vector<Value>& sources);
  const char* why() const { return why_; }

  // A fold of one contribution of every rank.
  bool complete(Value value) const {
    return nodes_[value].folded && nodes_[value].ranks == everybody_;
  }
  // The one fold of all contributions to the value's unit, from rank 0's to the last one's.
  bool in_rank_order(Value value);
  // How the ranks' contributions are folded, whatever they are to: equal for equal orders.
  uint32_t order(Value value) const { return nodes_[value].order; }
  uint64_t unit(Value value) const { return nodes_[value].unit; }

 private:
  struct Node {
    uint64_t unit = 0;
    uint64_t ranks = 0;  // a bit for each rank whose contribution is in it
    bool folded = false;
    uint32_t order = 0;
  };
  Value refuse(const char* why);

  uint64_t everybody_;
  std::vector<Node> nodes_;
  // Of many thousand entries, which all live as long as this.
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::map<std::pair<uint16_t, uint64_t>, Value> leaves_{&memory_};
  std::pmr::map<std::vector<Value>, Value> folds_{&memory_};
  // Of a fold, by those of its sources.
  std::pmr::map<std::vector<uint32_t>, uint32_t> orders_{&memory_};
  const char* why_ = "";
};

}  // namespace rdmacoll
