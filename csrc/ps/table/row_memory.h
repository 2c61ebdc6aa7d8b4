// RowMemory: how much memory the rows of all tables of a server take, with their state, their
// index, and what they may still grow into. Floor: ps/table. Thread: the server's.
#pragma once

#include <cstdint>

namespace rdmacoll::ps {

struct RowMemory {
  uint64_t bytes = 0;
};

}  // namespace rdmacoll::ps
