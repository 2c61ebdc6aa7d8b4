// Tables that are dropped: what becomes of their memory, of who uses them, and of what else is in
// their buckets.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/ps/near_job.h"

namespace rdmacoll::ps::drop_test {
namespace {

constexpr uint32_t kDense = 1;
constexpr uint32_t kRows = 2;
constexpr uint64_t kElements = 2 * kShardElements + 5;
constexpr uint32_t kDim = 8;

TableSpec dense_spec() {
  return {.name = "dense",
          .elements = kElements,
          .optimizer = Optimizer{.kind = OptimizerKind::Adam, .lr = 1}};
}
TableSpec rows_spec() { return {.name = "rows", .kind = TableKind::Rows, .dim = kDim}; }

// A number of a table whose first shard is in the same bucket.
uint32_t beside(uint32_t table) {
  uint32_t other = 100;
  while (bucket_of_shard(other, 0) != bucket_of_shard(table, 0)) ++other;
  return other;
}

class Drop : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(job_.client().create(kDense, dense_spec()).ok());
    ASSERT_TRUE(job_.client().create(kRows, rows_spec()).ok());
    EXPECT_TRUE(push_dense().ok());
    EXPECT_TRUE(push_rows().ok());
    EXPECT_TRUE(pull_dense().ok());
    EXPECT_TRUE(pull_rows().ok());
  }
  Status wait(const BatchPtr& batch) { return job_.client().wait(batch, job_.limit()); }
  Status push_dense() {
    const std::vector<float> ones(kElements, 1.0f);
    return wait(job_.client().push_range(kDense, 0, ones, PushAs::Gradient, job_.limit()));
  }
  Status push_rows() {
    const std::vector<float> ones(ids_.size() * kDim, 1.0f);
    return wait(job_.client().push_rows(kRows, ids_, ones.data(), PushAs::Gradient, job_.limit()));
  }
  Status pull_dense() {
    std::vector<float> values(kElements);
    return wait(job_.client().pull_range(kDense, 0, values, job_.limit()));
  }
  Status pull_rows() {
    std::vector<float> values(ids_.size() * kDim);
    return wait(job_.client().pull_rows(kRows, ids_, values.data(), job_.limit()));
  }
  void drop_all() {
    for (uint32_t server = 0; server < GetParam(); ++server) {
      job_.drop(server, kDense);
      job_.drop(server, kRows);
    }
  }
  static void expect_dropped(const Status& status, const std::string& table) {
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
    EXPECT_NE(status.message().find("table '" + table + "' was dropped; make it anew"),
              std::string::npos)
        << status.message();
  }
  void expect_all_dropped() {
    expect_dropped(push_dense(), "dense");
    expect_dropped(push_rows(), "rows");
    expect_dropped(pull_dense(), "dense");
    expect_dropped(pull_rows(), "rows");
  }
  // In the buckets of what was dropped, by the same worker.
  void expect_others_go_on() {
    const uint32_t other = beside(kDense);
    ASSERT_TRUE(job_.client().create(other, {.name = "other", .elements = 3}).ok());
    const std::vector<float> ones(3, 1.0f);
    job_.good(job_.client().push_range(other, 0, ones, PushAs::Gradient, job_.limit()));
    std::vector<float> values(3);
    job_.good(job_.client().pull_range(other, 0, values, job_.limit()));
    EXPECT_EQ(values, std::vector<float>(3, ++pushed_to_others_));
  }

  float pushed_to_others_ = 0;
  const std::vector<uint64_t> ids_{1, 2, 3, 500};
  NearJob job_{GetParam(), 2};
};

TEST_P(Drop, FreesItsMemory) {
  EXPECT_GT(job_.used_bytes(), 3 * kElements * sizeof(float));
  drop_all();
  EXPECT_EQ(job_.used_bytes(), 0u);
  for (uint32_t server = 0; server < GetParam(); ++server) {
    EXPECT_EQ(job_.stats(server).tables, 0u);
    EXPECT_EQ(job_.stats(server).elements + job_.stats(server).rows, 0u);
  }
}

TEST_P(Drop, TellsWhoUsesIt) {
  drop_all();
  expect_all_dropped();
  expect_all_dropped();
  expect_others_go_on();
}

// The others hear of it later.
TEST_P(Drop, IsTakenInAnyOrder) {
  for (uint32_t server = 0; server < GetParam(); ++server) {
    job_.drop(server, kDense);
    const Status status = push_dense();
    if (!status.ok()) expect_dropped(status, "dense");
    expect_others_go_on();
  }
  expect_dropped(push_dense(), "dense");
}

TEST_P(Drop, IsKnownBeforeTheTableIs) {
  for (uint32_t server = 0; server < GetParam(); ++server) job_.drop(server, 7);
  ASSERT_TRUE(job_.client().create(7, {.name = "late", .elements = 3}).ok());
  const std::vector<float> ones(3, 1.0f);
  expect_dropped(wait(job_.client().push_range(7, 0, ones, PushAs::Gradient, job_.limit())),
                 "late");
}

INSTANTIATE_TEST_SUITE_P(Servers, Drop, testing::Values(1, 2, 3));

// Of a bucket that is told to a new backup, what is left is told all the same.
TEST(DropWhileABucketIsTold, TellsTheRest) {
  for (int turns = 0; turns < 12; ++turns) {
    NearJob job(3, 2);
    const uint32_t other = beside(kDense);
    ASSERT_TRUE(job.client().create(kDense, dense_spec()).ok());
    ASSERT_TRUE(job.client().create(other, {.name = "other", .elements = 3}).ok());
    const std::vector<float> ones(kElements, 1.0f);
    job.good(job.client().push_range(kDense, 0, ones, PushAs::Gradient, job.limit()));
    job.good(
        job.client().push_range(other, 0, std::span(ones).first(3), PushAs::Gradient, job.limit()));
    job.kill(2);
    for (int turn = 0; turn < turns; ++turn) ASSERT_TRUE(job.wait(0, {}).ok());
    for (const uint32_t server : {0u, 1u}) job.drop(server, kDense);
    job.settle();
    job.kill(1);
    std::vector<float> values(3);
    job.good(job.client().pull_range(other, 0, values, job.limit()));
    EXPECT_EQ(values, std::vector<float>(3, 1.0f));
  }
}

}  // namespace
}  // namespace rdmacoll::ps::drop_test
