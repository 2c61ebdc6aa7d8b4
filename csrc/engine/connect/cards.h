// Cards: what the ranks of a group have told each other about themselves, kept for those that are
// not met yet. Floor: engine/connect. Thread: immutable once built.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/engine/connect/group_record.h"

namespace rdmacoll {

class Cards {
 public:
  // records: GroupRecord::encode()'s, by rank, that were checked.
  explicit Cards(const std::vector<std::string>& records);

  uint32_t world() const { return static_cast<uint32_t>(begins_.size() - 1); }
  GroupRecord of(uint32_t rank) const;

 private:
  // One after the other: a string of its own for each would take as much again.
  std::string bytes_;
  std::vector<uint32_t> begins_;  // by rank; one more at the end
};

}  // namespace rdmacoll
