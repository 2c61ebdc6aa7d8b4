// Cards: what the ranks of a group have told each other about themselves, kept for those that are
// not met yet. Floor: engine/connect. Thread: immutable once built.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/engine/connect/columns.h"
#include "csrc/engine/connect/group_record.h"
#include "csrc/plan/islands.h"

namespace rdmacoll {

class Cards {
 public:
  // records: GroupRecord::encode()'s, by rank, that were checked. Ranks of an island have much in
  // common, all ranks some (columns.h): of 300 to 500 bytes some 30 are a rank's own.
  Cards(const std::vector<std::string>& records, const Islands& islands);

  uint32_t world() const { return static_cast<uint32_t>(places_.size()); }
  GroupRecord of(uint32_t rank) const;

 private:
  struct Place {
    uint16_t table = 0;
    uint16_t row = 0;
  };
  std::vector<Columns> tables_;  // one for each size of records
  std::vector<Place> places_;    // by rank
};

}  // namespace rdmacoll
