// The limit of a server's memory: what counts, what is refused, and what goes on all the same.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "csrc/ps/table/row_shard.h"
#include "tests/unit/ps/near_job.h"

namespace rdmacoll::ps::memory_limit_test {
namespace {

constexpr uint64_t kDim = 64;
constexpr uint64_t kAtOnce = 100;
constexpr uint64_t kLimitBytes = 16 << 20;
constexpr uint64_t kRowBytes = kDim * sizeof(float);

TableSpec rows_spec() { return {.name = "rows", .kind = TableKind::Rows, .dim = kDim}; }

TEST(RowMemory, CountsWhatRowsTakeUntilTheyAreForgotten) {
  HeapMemory heap;
  const uint64_t& used_bytes = heap.row_bytes();
  const TableSpec spec = rows_spec();
  Steps steps(spec);
  {
    RowMemory memory([&](uint64_t bytes) { return heap.take_for_rows(1, bytes); },
                     heap.row_bytes());
    uint64_t after = 0;
    for (int round = 0; round < 2; ++round) {  // what was given back is taken again
      RowShard shard(spec, 0, steps, memory);
      EXPECT_EQ(used_bytes, sizeof(RowDirectory));
      for (uint64_t id = 0; id < kAtOnce; ++id) shard.place_of(id);
      EXPECT_GE(used_bytes, kAtOnce * kRowBytes);
      EXPECT_LT(used_bytes, sizeof(RowDirectory) + 2 * kAtOnce * kRowBytes);
      const uint64_t before = used_bytes;
      for (uint64_t id = 0; id < kAtOnce; ++id) shard.place_of(id);
      EXPECT_TRUE(shard.has(kAtOnce - 1));
      EXPECT_FALSE(shard.has(kAtOnce));
      EXPECT_EQ(used_bytes, before);
      if (round == 0) after = heap.extents();
    }
    EXPECT_EQ(used_bytes, sizeof(RowDirectory));
    EXPECT_EQ(heap.extents(), after);
  }
  EXPECT_EQ(used_bytes, 0u);
}

class MemoryLimit : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(job_.client().create(1, rows_spec()).ok()); }
  Status pull(uint64_t first) {
    std::vector<uint64_t> ids(kAtOnce);
    std::iota(ids.begin(), ids.end(), first);
    std::vector<float> values(kAtOnce * kDim);
    const BatchPtr batch = job_.client().pull_rows(1, ids, values.data(), job_.limit());
    return job_.client().wait(batch, job_.limit());
  }
  // Pulls new rows until that is refused; how many there are then.
  uint64_t fill() {
    for (uint64_t first = 0;; first += kAtOnce) {
      const Status status = pull(first);
      if (status.ok() && first * kRowBytes < 2 * kLimitBytes) continue;
      EXPECT_NE(status.message().find("no room for new rows of table 'rows'"), std::string::npos)
          << status.message();
      return first;
    }
  }

  NearJob job_{2, 1, kLimitBytes};
};

TEST_F(MemoryLimit, RefusesNewRowsAndServesTheOthers) {
  const uint64_t rows = fill();
  EXPECT_GT(rows, kLimitBytes / kRowBytes / 4);
  EXPECT_LT(rows, kLimitBytes / kRowBytes);
  EXPECT_GE(job_.used_bytes(), kLimitBytes);
  EXPECT_LT(job_.used_bytes(), 2 * kLimitBytes);
  const uint64_t before = job_.used_bytes();
  for (uint64_t first = 0; first < rows; first += kAtOnce) {
    const Status status = pull(first);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  const std::vector<uint64_t> ids{0, rows - 1};
  const std::vector<float> ones(2 * kDim, 1.0f);
  job_.good(job_.client().push_rows(1, ids, ones.data(), PushAs::Gradient, job_.limit()));
  EXPECT_FALSE(pull(2 * rows).ok());
  EXPECT_EQ(job_.used_bytes(), before);
}

TEST_F(MemoryLimit, RefusesDenseTablesWhereRowsTakeAllOfIt) {
  fill();
  ASSERT_TRUE(job_.client().create(2, {.name = "dense", .elements = 8}).ok());
  std::vector<float> values(8);
  const BatchPtr batch = job_.client().pull_range(2, 0, values, job_.limit());
  const Status status = job_.client().wait(batch, job_.limit());
  EXPECT_NE(status.message().find("more bytes of a dense table"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace rdmacoll::ps::memory_limit_test
