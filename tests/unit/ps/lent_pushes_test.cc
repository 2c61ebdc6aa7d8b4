// Pushes of values that servers read in the worker's memory: these are not sent, and until the push
// is done they are what lies there.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
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

// --- gradients of steps --------------------------------------------------------------------------

// Two workers' gradients of a step, one behind the other.
class LentSteps : public testing::Test {
 protected:
  LentSteps() : job_(2, 2) {
    TableSpec spec{.name = "w", .elements = kElements};
    spec.optimizer = Optimizer{.kind = OptimizerKind::Sgd, .lr = 1};
    spec.pace = Pace{kElements, true};
    EXPECT_TRUE(job_.client().create(1, spec).ok());
    begin({1, 2});
    job_.lend(both_, {0, 1});
  }
  void begin(Generation generation) {
    job_.good(job_.client().begin_generation(1, generation, 0, job_.limit()));
  }
  std::span<float> of(uint32_t rank) {
    return std::span(both_).subspan(rank * kElements, kElements);
  }
  BatchPtr push(uint32_t rank, std::span<const float> gradient, uint32_t generation = 1) {
    return job_.client().push_range(1, 0, gradient, PushAs::Gradient, job_.limit(),
                                    {rank, 1, generation});
  }
  Status wait_briefly(const BatchPtr& batch) {
    return job_.client().wait(batch, {Deadline::after_ms(job_.clock(), 20), {}});
  }
  float pull() {
    std::vector<float> values(kElements);
    job_.good(job_.client().pull_range(1, 0, values, job_.limit()));
    EXPECT_EQ(std::ranges::count(values, values[0]), static_cast<ptrdiff_t>(kElements));
    return values[0];
  }
  NearJob job_;
  std::vector<float> both_ = std::vector<float>(2 * kElements, 2);
};

TEST_F(LentSteps, AreNotDoneBeforeTheStepIsWholeAndReadThen) {
  const BatchPtr first = push(0, of(0));
  EXPECT_EQ(wait_briefly(first).code(), StatusCode::Timeout);
  std::ranges::fill(of(0), 4);
  job_.good(push(1, of(1)));
  job_.good(first);
  std::ranges::fill(both_, kLater);
  EXPECT_EQ(pull(), -3);
  job_.kill(0);
  EXPECT_EQ(pull(), -3) << "so has the backup";
}

TEST_F(LentSteps, AreCopiedWhereTheyAreSent) {
  const std::vector<float> sent(kElements, 4);
  job_.good(push(0, sent));
  job_.good(push(1, of(1)));
  EXPECT_EQ(pull(), -3);
}

TEST_F(LentSteps, AreNotDoneAtTheSuccessorOfAServerThatIsLostEither) {
  const BatchPtr first = push(0, of(0));
  EXPECT_EQ(wait_briefly(first).code(), StatusCode::Timeout);
  job_.kill(0);
  EXPECT_EQ(wait_briefly(first).code(), StatusCode::Timeout);
  job_.good(push(1, of(1)));
  job_.good(first);
  EXPECT_EQ(pull(), -2);
}

TEST_F(LentSteps, AreRefusedOnceOthersGoOn) {
  const BatchPtr first = push(0, of(0));
  EXPECT_EQ(wait_briefly(first).code(), StatusCode::Timeout);
  begin({2, 1});
  const Status status = job_.client().wait(first, job_.limit());
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument) << status.message();
  EXPECT_NE(status.message().find("another number of them has begun"), std::string::npos);
  std::ranges::fill(of(0), kLater);
  job_.good(push(0, of(1), 2));
  EXPECT_EQ(pull(), -2);
}

TEST_F(LentSteps, EndWithTheirTable) {
  const BatchPtr first = push(0, of(0));
  EXPECT_EQ(wait_briefly(first).code(), StatusCode::Timeout);
  for (const uint32_t server : {0, 1}) job_.drop(server, 1);
  const Status status = job_.client().wait(first, job_.limit());
  EXPECT_NE(status.message().find("was dropped"), std::string::npos) << status.message();
}

TEST_F(LentSteps, LetTheirBucketsBeHandedOver) {
  const BatchPtr first = push(0, of(0));
  EXPECT_EQ(wait_briefly(first).code(), StatusCode::Timeout);
  for (const uint32_t server : {0, 1}) job_.hand_over(server);
  EXPECT_EQ(wait_briefly(first).code(), StatusCode::Timeout);
  job_.good(push(1, of(1)));
  job_.good(first);
  EXPECT_EQ(pull(), -2);
}

// --- what a server does with them ----------------------------------------------------------------

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
