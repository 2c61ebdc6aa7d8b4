// Pushes of values that servers read in the worker's memory: these are not sent, and until the push
// is done they are what lies there.
#include <gtest/gtest.h>

#include <vector>

#include "csrc/ps/server/lent_memory.h"
#include "tests/unit/ps/near_job.h"

namespace rdmacoll::ps::lent_pushes_test {
namespace {

constexpr uint64_t kElements = 2 * kShardElements + 5;
constexpr float kLater = 1'000;  // than push_range() has returned

class Lent : public testing::Test {
 protected:
  Lent() : job_(2, 2) {
    EXPECT_TRUE(job_.client().create(1, {.name = "w", .elements = kElements}).ok());
  }
  BatchPtr push(std::span<const float> values) {
    return job_.client().push_range(1, 0, values, PushAs::Gradient, job_.limit());
  }
  std::vector<float> pull() {
    std::vector<float> values(kElements, -1);
    job_.good(job_.client().pull_range(1, 0, values, job_.limit()));
    return values;
  }
  NearJob job_;
  std::vector<float> values_ = std::vector<float>(kElements, 1);
};

TEST_F(Lent, AreReadByPrimaryAndBackupWhereTheyLie) {
  job_.lend(values_, {0, 1});
  const BatchPtr batch = push(values_);
  const std::vector<float> later(kElements, kLater);
  values_ = later;
  job_.good(batch);
  values_.assign(kElements, -1);
  EXPECT_EQ(pull(), later);
  job_.kill(0);
  EXPECT_EQ(pull(), later);
}

TEST_F(Lent, AreSentToABackupThatHasNotTheLoan) {
  for (const ServerId has_it : {ServerId{0}, ServerId{1}}) {
    NearJob job(2, 2);
    ASSERT_TRUE(job.client().create(1, {.name = "w", .elements = kElements}).ok());
    std::vector<float> values(kElements, 1);
    job.lend(values, {has_it});
    job.good(job.client().push_range(1, 0, values, PushAs::Gradient, job.limit()));
    job.kill(1 - has_it);
    std::vector<float> pulled(kElements);
    job.good(job.client().pull_range(1, 0, pulled, job.limit()));
    EXPECT_EQ(pulled, values);
  }
}

TEST_F(Lent, AreSentAgainWhereTheServerCannotReadThem) {
  job_.lend(values_, {0, 1});
  job_.take_back(1, 0);
  job_.take_back(1, 1);
  job_.good(push(values_));
  EXPECT_EQ(pull(), values_);
  EXPECT_FALSE(job_.lends(0));
  EXPECT_FALSE(job_.lends(1));
  job_.good(push(values_));
  EXPECT_EQ(pull(), std::vector<float>(kElements, 2));
}

TEST_F(Lent, AreSentToTheSuccessorOfAServerThatIsLost) {
  job_.lend(values_, {0, 1});
  const BatchPtr batch = push(values_);
  job_.kill(0);
  job_.good(batch);
  EXPECT_EQ(pull(), values_);
}

TEST_F(Lent, MayBeAnyRangeOfALoan) {
  std::vector<float> all = counting(3 * kElements, 0);
  job_.lend(all, {0, 1});
  const auto part = std::span<const float>(all).subspan(kElements - 7, kElements);
  job_.good(push(part));
  EXPECT_EQ(pull(), counting(kElements, kElements - 7));
}

TEST_F(Lent, AreCopiedOnceForPrimaryAndBackup) {
  job_.lend_stages(2);  // fewer than shards
  const BatchPtr batch = push(values_);
  EXPECT_GT(job_.stages_held(), 0u);
  values_.assign(kElements, kLater);  // as it may be
  job_.good(batch);
  EXPECT_EQ(job_.stages_held(), 0u);
  const std::vector<float> pushed(kElements, 1);
  EXPECT_EQ(pull(), pushed);
  job_.kill(0);
  EXPECT_EQ(pull(), pushed);
  job_.good(push(pushed));
  EXPECT_EQ(pull(), std::vector<float>(kElements, 2));
}

TEST_F(Lent, AreCopiedAgainForTheSuccessorOfAServerThatIsLost) {
  job_.lend_stages(8);
  const BatchPtr batch = push(values_);
  job_.kill(1);
  job_.good(batch);
  EXPECT_EQ(job_.stages_held(), 0u);
  EXPECT_EQ(pull(), values_);
}

TEST(LentMemory, RefusesWhatIsNotInIt) {
  std::vector<float> values(8);
  LentMemory lent;
  const auto bytes = std::as_bytes(std::span(values));
  lent.add({7, 1}, [&] { return Mapped{bytes}; });
  const auto find = [&](uint64_t worker, uint32_t loan, uint64_t offset, uint32_t count) {
    Push push{.head = {.count = count, .loan = loan, .worker = worker}};
    push.lent = LentValues{offset};
    const Status found = lent.find(push);
    EXPECT_EQ(found.ok(), push.values.size() == count && count > 0);
    return found.code();
  };
  EXPECT_EQ(find(7, 1, 0, 8), StatusCode::Ok);
  EXPECT_EQ(find(7, 1, 28, 1), StatusCode::Ok);
  EXPECT_EQ(find(7, 1, 28, 2), StatusCode::InvalidArgument);
  EXPECT_EQ(find(7, 1, 2, 1), StatusCode::InvalidArgument);
  EXPECT_EQ(find(7, 1, 36, 1), StatusCode::InvalidArgument);
  EXPECT_EQ(find(7, 1, UINT64_MAX - 3, 1), StatusCode::InvalidArgument);
  EXPECT_EQ(find(7, 2, 0, 8), StatusCode::Unsupported);
  EXPECT_EQ(find(8, 1, 0, 8), StatusCode::Unsupported);
  lent.end({7, 1});
  EXPECT_EQ(find(7, 1, 0, 8), StatusCode::Unsupported);
}

}  // namespace
}  // namespace rdmacoll::ps::lent_pushes_test
