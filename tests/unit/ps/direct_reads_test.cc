// Pulls that a worker reads in its servers' memory: they have what is acknowledged, and nothing of
// a server that has given a bucket away.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/ps/near_job.h"

namespace rdmacoll::ps::direct_reads_test {
namespace {

constexpr uint64_t kElements = 3 * kShardElements + 5;
constexpr uint64_t kShards = 4;

class Direct : public testing::Test {
 protected:
  explicit Direct(uint32_t servers = 1, uint32_t replicas = 1) : job_(servers, replicas) {
    EXPECT_TRUE(job_.client().create(1, {.name = "w", .elements = kElements}).ok());
    pull(0, kElements);  // asks
    EXPECT_EQ(job_.reads(), 0u);
  }
  std::vector<float> pull(uint64_t first, uint64_t count) {
    std::vector<float> values(count, -1);
    job_.good(job_.client().pull_range(1, first, values, job_.limit()));
    return values;
  }
  BatchPtr push(const std::vector<float>& values) {
    return job_.client().push_range(1, 0, values, PushAs::Gradient, job_.limit());
  }
  NearJob job_;
};

TEST_F(Direct, TakeNoPartOfAServer) {
  const auto all = counting(kElements, 1);
  job_.good(push(all));
  const uint64_t answered = job_.stats(0).pulls;
  EXPECT_EQ(pull(0, kElements), all);
  EXPECT_EQ(job_.reads(), kShards);
  const uint64_t first = kShardElements - 3;
  EXPECT_EQ(pull(first, kShardElements), counting(kShardElements, static_cast<float>(first + 1)));
  EXPECT_EQ(job_.reads(), kShards + 2);
  EXPECT_EQ(job_.stats(0).pulls, answered);
}

TEST_F(Direct, AreNotBegunBeforeAnOwnPushIsAcknowledged) {
  const auto some = counting(5, 1);
  const BatchPtr open = push(some);
  EXPECT_EQ(pull(0, 5), some);
  EXPECT_EQ(job_.reads(), 0u);
  job_.good(open);
  EXPECT_EQ(pull(0, 5), some);
  EXPECT_EQ(job_.reads(), 1u);
}

class DirectOfTwo : public Direct {
 protected:
  DirectOfTwo() : Direct(2, 2) {}
};

TEST_F(DirectOfTwo, FindNothingOfWhatWasHandedOver) {
  const auto all = counting(kElements, 1);
  job_.good(push(all));
  job_.hand_over(0);
  EXPECT_EQ(pull(0, kElements), all);  // what is hidden is asked for where it is now
  job_.good(push(all));
  const uint64_t read = job_.reads();
  auto twice = all;
  for (float& value : twice) value *= 2;
  EXPECT_EQ(pull(0, kElements), twice);
  EXPECT_EQ(pull(0, kElements), twice);
  EXPECT_GE(job_.reads(), read + kShards);
}

TEST_F(DirectOfTwo, AreOfTheBackupOnceThePrimaryIsLost) {
  const auto all = counting(kElements, 1);
  job_.good(push(all));
  job_.kill(0);
  EXPECT_EQ(pull(0, kElements), all);
  job_.good(push(all));
  EXPECT_EQ(pull(0, 2), (std::vector<float>{2, 4}));
}

}  // namespace
}  // namespace rdmacoll::ps::direct_reads_test
