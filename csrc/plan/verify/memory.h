// Cells and vector clocks: who wrote and read a byte last, and whether that happened before.
// Floor: plan/verify, behind verify.h only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "csrc/plan/verify/symbols.h"

namespace rdmacoll {

using Clock = std::vector<uint32_t>;  // by lane of the world: how much of its past is known

inline void join(Clock& clock, const Clock& other) {
  for (size_t lane = 0; lane < clock.size(); ++lane) {
    clock[lane] = std::max(clock[lane], other[lane]);
  }
}

struct Access {
  uint32_t lane = 0;
  uint32_t time = 0;  // of the lane's own clock, which starts at 1; 0: there was none
  bool happened_before(const Clock& clock) const { return time <= clock[lane]; }
};

// One byte of memory.
struct Cell {
  Value value = kNothing;
  Access written;
  // Since then, the last of each lane. Most cells are read by one: others need memory.
  Access read_first;
  std::vector<Access> other_reads;

  bool may_read(const Clock& clock) const { return written.happened_before(clock); }
  bool may_write(const Clock& clock) const {
    return written.happened_before(clock) && read_first.happened_before(clock) &&
           std::all_of(other_reads.begin(), other_reads.end(),
                       [&](const Access& read) { return read.happened_before(clock); });
  }
  Value read(uint32_t lane, uint32_t time) {
    if (read_first.time == 0 || read_first.lane == lane) {
      read_first = {lane, time};
      return value;
    }
    const auto mine = std::find_if(other_reads.begin(), other_reads.end(),
                                   [&](const Access& read) { return read.lane == lane; });
    if (mine == other_reads.end()) {
      other_reads.push_back({lane, time});
    } else {
      mine->time = time;
    }
    return value;
  }
  void write(uint32_t lane, uint32_t time, Value new_value) {
    value = new_value;
    written = {lane, time};
    read_first = {};
    other_reads.clear();
  }
};

using Cells = std::vector<Cell>;

}  // namespace rdmacoll
