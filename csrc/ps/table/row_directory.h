// RowDirectory: how the rows of a table lie in the memory of their server, where workers find them
// without it. Each bucket has an entry: a word that counts changes, and where the index of its rows
// is. The index has pairs of an id and of where its row is. A worker believes what it has read only
// if the word was even before, and is the same after that.
// Floor: ps/table. Thread: the server's writes, any reads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "csrc/base/limits.h"
#include "csrc/ps/table/table_spec.h"

namespace rdmacoll::ps {

struct IndexPlace {
  std::atomic<uint64_t> id{0};
  std::atomic<uint64_t> row{0};  // a packed ShardPlace; 0: the place is free
};

struct BucketRows {
  std::atomic<uint64_t> changes{0};       // odd: one is under way
  std::atomic<uint64_t> index{0};         // a packed ShardPlace; 0: nothing is shown
  std::atomic<uint64_t> index_places{0};  // a power of two
};

using RowDirectory = std::array<BucketRows, kBuckets>;

// Before the floats of a row.
struct RowHead {
  uint64_t id = 0;
  uint64_t pushes = 0;
};

// Where the look for an id begins, of so many places. Of the ids that come here, those of one
// bucket, the lower bits are no longer random.
inline uint64_t first_index_place(uint64_t id, uint64_t places) {
  return (mixed(id) >> 20) & (places - 1);
}

// Something changes while this is there.
class RowChange {
 public:
  explicit RowChange(BucketRows& rows)
      : rows_(rows), before_(rows.changes.load(std::memory_order_relaxed)) {
    rows_.changes.store(before_ + 1, std::memory_order_relaxed);
    // Nothing of the change may be seen before that.
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~RowChange() { rows_.changes.store(before_ + 2, std::memory_order_release); }
  RowChange(const RowChange&) = delete;
  RowChange& operator=(const RowChange&) = delete;

 private:
  BucketRows& rows_;
  const uint64_t before_;
};

// A reader's look at a bucket.
class RowLook {
 public:
  explicit RowLook(const BucketRows& rows)
      : rows_(&rows), changes_(rows.changes.load(std::memory_order_acquire)) {}
  // Whether all that was read since is of one moment.
  bool holds() const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return changes_ % 2 == 0 && rows_->changes.load(std::memory_order_relaxed) == changes_;
  }

 private:
  const BucketRows* rows_;
  uint64_t changes_;
};

}  // namespace rdmacoll::ps
