// A worker goes on after servers have refused its pushes for want of room: what else it pushes to
// the bucket is taken, in its turn, and the refused ones are nowhere.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "csrc/ps/table/saved.h"
#include "tests/unit/ps/near_job.h"

namespace rdmacoll::ps::refused_push_test {
namespace {

constexpr uint32_t kHolds = 1;  // the room
constexpr uint32_t kSmall = 2;
constexpr uint64_t kFew = 3;
constexpr uint32_t kServers = 2;

TableSpec large_spec(const std::string& name) { return {.name = name, .elements = kShardElements}; }

// A number of a table, of those from one on, whose shard is in the same bucket.
uint32_t beside(uint32_t table, uint32_t from) {
  while (bucket_of_shard(from, 0) != bucket_of_shard(table, 0)) ++from;
  return from;
}

// There is room for one large table.
class RefusedPush : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    TableSpec paced = large_spec("paced");
    paced.pace = Pace{kShardElements, true};
    ASSERT_TRUE(client().create(kHolds, large_spec("holds")).ok());
    ASSERT_TRUE(client().create(kSmall, {.name = "small", .elements = kFew}).ok());
    ASSERT_TRUE(client().create(large_, large_spec("large")).ok());
    ASSERT_TRUE(client().create(paced_, paced).ok());
    job_.good(push(kHolds));
  }
  Client& client() { return job_.client(); }
  BatchPtr push(uint32_t table, PushAs as = PushAs::Gradient, WorkerStep step = {}) {
    const std::vector<float> ones(table == kSmall ? kFew : kShardElements, 1.0f);
    return client().push_range(table, 0, ones, as, job_.limit(), step);
  }
  BatchPtr begin_steps() { return client().begin_generation(paced_, {1, 1}, 0, job_.limit()); }
  void expect_refused(const BatchPtr& batch) {
    const Status status = client().wait(batch, job_.limit());
    EXPECT_EQ(status.code(), StatusCode::System);
    EXPECT_NE(status.message().find("the server has no room for"), std::string::npos)
        << status.message();
  }
  float pull(uint32_t table, uint32_t step = 0) {
    float value = -1;
    job_.good(client().pull_range(table, 0, {&value, 1}, job_.limit(), step));
    return value;
  }
  ServerId primary() const { return job_.map().of(bucket_of_shard(kSmall, 0)).primary; }
  void make_room() {
    for (uint32_t server = 0; server < kServers; ++server) {
      if (server != lost_) job_.drop(server, kHolds);
    }
  }
  void lose_primary() {
    lost_ = primary();
    job_.kill(lost_);
  }

  const uint32_t large_ = beside(kSmall, 100);
  const uint32_t paced_ = beside(kSmall, large_ + 1);
  ServerId lost_ = kNoServer;
  const uint64_t large_bytes_ = DenseShard::memory_bytes(large_spec(""), 0);
  NearJob job_{kServers, GetParam(), GetParam() * large_bytes_ + large_bytes_ / 2};
};

TEST_P(RefusedPush, ThoseBehindItAreTaken) {
  job_.good(push(kSmall));
  expect_refused(push(large_));
  job_.good(push(kSmall));
  EXPECT_EQ(pull(kSmall), 2);
}

TEST_P(RefusedPush, ThoseBehindItAreTakenThatWereUnderWay) {
  std::vector<float> saved(kCountFloats + kShardElements, 1.0f);
  const std::vector<BatchPtr> refused{push(large_), push(large_, PushAs::Assigned)};
  const BatchPtr first = push(kSmall);
  const BatchPtr restored = client().restore_shard(large_, 0, saved, job_.limit());
  const BatchPtr second = push(kSmall, PushAs::Assigned);
  const BatchPtr third = push(kSmall);
  for (const BatchPtr& taken : {third, second, first}) job_.good(taken);
  for (const BatchPtr& one : refused) expect_refused(one);
  expect_refused(restored);
  EXPECT_EQ(pull(kSmall), 2);
}

TEST_P(RefusedPush, PullsHaveWhatIsBehindIt) {
  job_.good(push(kSmall));
  const BatchPtr refused = push(large_);
  const BatchPtr behind = push(kSmall);
  EXPECT_EQ(pull(kSmall), 2);
  expect_refused(refused);
  job_.good(behind);
}

TEST_P(RefusedPush, OneOfAStepIsRefusedAlike) {
  expect_refused(begin_steps());
  expect_refused(push(paced_, PushAs::Gradient, {0, 1, 1}));
  job_.good(push(kSmall));
  make_room();
  job_.good(begin_steps());
  job_.good(push(paced_, PushAs::Gradient, {0, 1, 1}));
  EXPECT_EQ(pull(paced_, 1), 1);
}

TEST_P(RefusedPush, ItIsTakenOnceThereIsRoom) {
  expect_refused(push(large_));
  job_.good(push(kSmall));
  make_room();
  job_.good(push(large_));
  EXPECT_EQ(pull(large_), 1);
}

class RefusedPushKeptTwice : public RefusedPush {};

TEST_P(RefusedPushKeptTwice, TheBackupHasWhatIsBehindIt) {
  expect_refused(push(large_));
  job_.good(push(kSmall));
  EXPECT_EQ(job_.map().of(bucket_of_shard(kSmall, 0)).backup, kServers - 1 - primary());
  lose_primary();
  job_.good(push(kSmall));
  EXPECT_EQ(pull(kSmall), 2);
  make_room();
  job_.good(push(large_));
  EXPECT_EQ(pull(large_), 1);
}

TEST_P(RefusedPushKeptTwice, ThePrimaryIsLostBeforeItHearsMore) {
  expect_refused(push(large_));
  lose_primary();
  job_.good(push(kSmall));
  EXPECT_EQ(pull(kSmall), 1);
}

INSTANTIATE_TEST_SUITE_P(Replicas, RefusedPush, testing::Values(1, 2));
INSTANTIATE_TEST_SUITE_P(Replicas, RefusedPushKeptTwice, testing::Values(2));

}  // namespace
}  // namespace rdmacoll::ps::refused_push_test
