// TableSpec: what a table of the parameter server is: its shape, how its parts are cut, where rows
// begin, and the optimizer that pushes are applied with. All servers and workers of a job have the
// same one. It comes from outside, so parsing trusts nothing.
// Floor: ps/table. Thread: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/limits.h"
#include "csrc/base/status.h"
#include "csrc/memory/copy.h"
#include "csrc/reduce/optimizer.h"

namespace rdmacoll::ps {

// Tables are cut into shards, and the shards of all tables are spread over so many buckets: a
// bucket is what a server has, and what moves from one to another.
inline constexpr uint32_t kBuckets = 1024;
// The elements of a shard of a dense table: one message, and one version.
inline constexpr uint64_t kShardElements = 256 * 1024;
inline constexpr uint64_t kMostElements = uint64_t{1} << 44;
inline constexpr uint32_t kMostDim = 64 * 1024;  // elements of a row
inline constexpr size_t kTableNameBytesMax = 200;
inline constexpr uint32_t kMostPaced = 4096;  // workers

enum class TableKind : uint8_t {
  Dense,  // elements that are pulled and pushed in ranges
  Rows,   // rows of `dim` elements, by ids
};

// What is in an element that nobody has written yet.
struct Initial {
  enum class Kind : uint8_t { Constant, Uniform, Normal };
  Kind kind = Kind::Constant;
  // Constant: the value. Uniform: from `low` to `high`. Normal: mean and standard deviation.
  double first = 0;
  double second = 0;
  uint64_t seed = 0;
};

// How the workers of a dense table wait for each other: each of them pushes the first `elements` of
// it once in each step, and nothing else. How many they are is no part of what the table is: it may
// change (pace_steps.h).
struct Pace {
  uint64_t elements = 0;
  // Bulk-synchronous: the optimizer steps once for all workers, with the mean of their gradients,
  // added in the order of ranks. Else it steps for each worker, when its gradient comes.
  bool is_sync = false;
};

struct TableSpec {
  std::string name;
  TableKind kind = TableKind::Dense;
  uint64_t elements = 0;                 // of a dense table
  uint32_t dim = 0;                      // of a row
  uint64_t rows = 0;                     // ids are 0 to rows - 1; 0: any
  std::optional<Optimizer> optimizer{};  // nullopt: what is pushed is added
  Initial initial{};                     // of rows
  std::optional<Pace> pace{};            // of a dense table; nullopt: nobody waits for anybody

  // Of a dense table.
  uint64_t shards() const { return (elements + kShardElements - 1) / kShardElements; }
  uint64_t shard_elements(uint64_t shard) const {
    const uint64_t before = shard * kShardElements;
    return elements - before < kShardElements ? elements - before : kShardElements;
  }
  // How its values are written and copied, a shard or more at a time.
  Stores stores() const {
    return elements * sizeof(float) >= kStreamBytes ? Stores::Streamed : Stores::Cached;
  }
  // With a pace: the shards that are pushed to in each step, and how many elements of each.
  uint64_t paced_shards() const { return (pace->elements + kShardElements - 1) / kShardElements; }
  uint64_t paced_elements(uint64_t shard) const {
    const uint64_t before = shard * kShardElements;
    return pace->elements <= before ? 0 : std::min(pace->elements - before, kShardElements);
  }
};

// Without one what is pushed is added: that is how SGD ascends with a rate of 1.
inline Optimizer optimizer_of(const TableSpec& spec) {
  return spec.optimizer.value_or(Optimizer{.kind = OptimizerKind::Sgd, .lr = 1, .maximize = true});
}

// InvalidArgument names what is wrong.
Status check(const TableSpec& spec);
std::string encode(const TableSpec& spec);
Result<TableSpec> parse_table_spec(const std::string& bytes);

// --- which bucket has what
// -------------------------------------------------------------------------

// A number with all its bits mixed: neighbours come far from each other.
constexpr uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
// Neighbouring shards are in neighbouring buckets, and so at different servers.
constexpr uint32_t bucket_of_shard(uint32_t table, uint64_t shard) {
  return static_cast<uint32_t>((mixed(table) + shard) % kBuckets);
}
constexpr uint32_t bucket_of_row(uint32_t table, uint64_t id) {
  return static_cast<uint32_t>(mixed(id + mixed(table)) % kBuckets);
}

}  // namespace rdmacoll::ps
