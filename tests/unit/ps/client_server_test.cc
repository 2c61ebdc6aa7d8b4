// A worker and its servers in one thread: what is pushed is what is pulled, wherever it lies.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "csrc/ps/table/initial_values.h"
#include "tests/unit/ps/near_job.h"

namespace rdmacoll::ps::client_server_test {
namespace {

class ClientServer : public testing::TestWithParam<uint32_t> {};

TEST_P(ClientServer, PullsWhatWasPushed) {
  NearJob job(GetParam());
  constexpr uint64_t kElements = 5 * kShardElements + 17;
  ASSERT_TRUE(job.client().create(1, {.name = "w", .elements = kElements}).ok());
  std::vector<float> expected(kElements);
  std::vector<float> pulled(kElements, -1);
  job.good(job.client().pull_range(1, 0, pulled, job.limit()));
  EXPECT_EQ(pulled, expected);

  const auto all = counting(kElements, 1);
  job.good(job.client().push_range(1, 0, all, PushAs::Assigned, job.limit()));
  job.good(job.client().push_range(1, 0, all, PushAs::Gradient, job.limit()));
  const uint64_t first = kShardElements - 5;
  const auto some = counting(kShardElements + 10, 7);
  job.good(job.client().push_range(1, first, some, PushAs::Gradient, job.limit()));
  for (uint64_t i = 0; i < kElements; ++i) expected[i] = 2 * all[i];
  for (uint64_t i = 0; i < some.size(); ++i) expected[first + i] += some[i];
  job.good(job.client().pull_range(1, 0, pulled, job.limit()));
  EXPECT_EQ(pulled, expected);
  std::vector<float> part(some.size());
  job.good(job.client().pull_range(1, first, part, job.limit()));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + first));
}

// A push has the rate that its worker gives it, and the next one that of the table.
TEST_P(ClientServer, StepsWithTheRatesOfThePush) {
  NearJob job(GetParam());
  const Optimizer descends{.kind = OptimizerKind::Sgd, .lr = 1};
  ASSERT_TRUE(job.client().create(1, {.name = "w", .elements = 2, .optimizer = descends}).ok());
  TableSpec of_rows{.name = "rows", .kind = TableKind::Rows, .dim = 2, .optimizer = descends};
  ASSERT_TRUE(job.client().create(2, of_rows).ok());
  const std::vector<float> ones(2, 1);
  const std::vector<uint64_t> ids{7};
  std::vector<float> dense(2), row(2);
  float expected = 0;
  for (const OwnRates& own : {OwnRates{.lr = 8}, {}, {.lr = 0}, {.lr = 0.5}, {.momentum = 0}}) {
    expected -= static_cast<float>(own.lr.value_or(1));
    job.good(job.client().push_range(1, 0, ones, PushAs::Gradient, job.limit(), {}, own));
    job.good(job.client().push_rows(2, ids, ones.data(), PushAs::Gradient, job.limit(), own));
    job.good(job.client().pull_range(1, 0, dense, job.limit()));
    job.good(job.client().pull_rows(2, ids, row.data(), job.limit()));
    EXPECT_EQ(dense[0], expected);
    EXPECT_EQ(row[1], expected);
  }
}

TEST_P(ClientServer, AddsUpRowsOfOneIdAndKeepsOthers) {
  NearJob job(GetParam());
  constexpr uint64_t kDim = 24;
  TableSpec spec{.name = "rows", .kind = TableKind::Rows, .dim = kDim};
  spec.initial = {Initial::Kind::Uniform, -1, 1, 5};
  ASSERT_TRUE(job.client().create(2, spec).ok());
  std::mt19937_64 draw(1);
  std::map<uint64_t, std::vector<float>> expected;
  for (int round = 0; round < 4; ++round) {
    std::vector<uint64_t> ids(20'000);
    for (uint64_t& id : ids) id = draw() % 3'000 * 0x1234567 + 1;
    std::vector<float> values(ids.size() * kDim);
    for (float& value : values) value = static_cast<float>(draw() % 64);
    for (size_t i = 0; i < ids.size(); ++i) {
      auto& row = expected[ids[i]];
      if (row.empty()) {
        row.resize(kDim);
        make_row(spec.initial, ids[i], row);
      }
    }
    std::map<uint64_t, std::vector<float>> sums;
    for (size_t i = 0; i < ids.size(); ++i) {
      auto& sum = sums[ids[i]];
      sum.resize(kDim);
      for (uint64_t j = 0; j < kDim; ++j) sum[j] += values[i * kDim + j];
    }
    for (const auto& [id, sum] : sums) {
      for (uint64_t j = 0; j < kDim; ++j) expected[id][j] += sum[j];
    }
    job.good(job.client().push_rows(2, ids, values.data(), PushAs::Gradient, job.limit()));
    std::vector<float> pulled(values.size());
    job.good(job.client().pull_rows(2, ids, pulled.data(), job.limit()));
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_TRUE(
          std::equal(expected[ids[i]].begin(), expected[ids[i]].end(), pulled.begin() + i * kDim))
          << "row " << ids[i] << " in round " << round;
    }
  }
  uint64_t rows = 0;
  for (uint32_t server = 0; server < GetParam(); ++server) rows += job.stats(server).rows;
  EXPECT_EQ(rows, expected.size());
}

TEST_P(ClientServer, SaysWhatIsWrong) {
  NearJob job(GetParam());
  std::vector<float> values(10);
  const auto unknown = job.client().push_range(9, 0, values, PushAs::Gradient, job.limit());
  EXPECT_EQ(unknown->status().code(), StatusCode::InvalidArgument);
  const Status empty = job.client().create(1, {.name = "w", .elements = 0});
  EXPECT_EQ(empty.code(), StatusCode::InvalidArgument);
  ASSERT_TRUE(job.client().create(1, {.name = "w", .elements = 12}).ok());
  const auto outside = job.client().push_range(1, 3, values, PushAs::Gradient, job.limit());
  EXPECT_NE(outside->status().message().find("'w', which has 12"), std::string::npos);
  TableSpec spec{.name = "r", .kind = TableKind::Rows, .dim = 2, .rows = 4};
  ASSERT_TRUE(job.client().create(2, spec).ok());
  const std::vector<uint64_t> ids{1, 4};
  const auto no_row = job.client().pull_rows(2, ids, values.data(), job.limit());
  EXPECT_NE(no_row->status().message().find("id 4"), std::string::npos);
}

TEST_P(ClientServer, FailsWhatNoServerHasAnyMore) {
  NearJob job(GetParam());
  ASSERT_TRUE(job.client().create(1, {.name = "w", .elements = 12}).ok());
  std::vector<float> values(12);
  const BatchPtr pull = job.client().pull_range(1, 0, values, job.limit());
  ASSERT_TRUE(pull->status().ok());
  for (uint32_t server = 0; server < GetParam(); ++server) job.kill(server);
  const Status lost = job.client().wait(pull, job.limit());
  EXPECT_EQ(lost.code(), StatusCode::PeerFailed);
  EXPECT_NE(lost.message().find("no other one has what it had"), std::string::npos);
  const BatchPtr again = job.client().pull_range(1, 0, values, job.limit());
  EXPECT_EQ(job.client().wait(again, job.limit()).code(), StatusCode::PeerFailed);
}

TEST_P(ClientServer, KeepsWhereAnAnswerGoesUntilItHasCome) {
  NearJob job(GetParam());
  ASSERT_TRUE(job.client().create(1, {.name = "w", .elements = 12}).ok());
  auto values = std::make_shared<std::vector<float>>(12);
  const std::weak_ptr<std::vector<float>> kept = values;
  const BatchPtr pull = job.client().pull_range(1, 0, *values, job.limit(), 0, values);
  values.reset();
  const Limit no_time{Deadline::after_ms(job.clock(), 0), {}};
  EXPECT_EQ(job.client().wait(pull, no_time).code(), StatusCode::Timeout);
  EXPECT_FALSE(kept.expired());
  job.good(pull);
  EXPECT_TRUE(kept.expired());
}

INSTANTIATE_TEST_SUITE_P(Servers, ClientServer, testing::Values(1, 2, 3, 7));

TEST(Backups, HaveWhatWasPushedWhenTheirPrimaryIsLost) {
  constexpr uint64_t kElements = 9 * kShardElements;
  NearJob job(3, 2);
  ASSERT_TRUE(job.client().create(1, {.name = "w", .elements = kElements}).ok());
  const auto all = counting(kElements, 1);
  job.good(job.client().push_range(1, 0, all, PushAs::Assigned, job.limit()));
  const BatchPtr open = job.client().push_range(1, 0, all, PushAs::Gradient, job.limit());
  job.kill(1);
  job.good(open);
  job.good(job.client().push_range(1, 0, all, PushAs::Gradient, job.limit()));
  std::vector<float> pulled(kElements);
  job.good(job.client().pull_range(1, 0, pulled, job.limit()));
  for (uint64_t i = 0; i < kElements; ++i) ASSERT_EQ(pulled[i], 3 * all[i]) << i;
}

TEST(RatesOfAPush, AreRefusedWhereTheOptimizerCannotHaveThem) {
  NearJob job(1);
  const auto make = [&](uint32_t table, std::optional<Optimizer> optimizer) {
    ASSERT_TRUE(
        job.client().create(table, {.name = "w", .elements = 1, .optimizer = optimizer}).ok());
  };
  make(1, std::nullopt);
  make(2, Optimizer{.kind = OptimizerKind::Sgd, .lr = 1});
  make(3, Optimizer{.kind = OptimizerKind::Adagrad, .lr = 1, .eps = 1});
  make(4, Optimizer{.kind = OptimizerKind::Sgd, .lr = 1, .momentum = 0.5, .nesterov = true});
  make(5, Optimizer{.kind = OptimizerKind::Adam, .lr = 1, .eps = 1, .beta1 = 0.5, .beta2 = 0.5});
  const std::vector<float> one{1};
  const auto refusal = [&](uint32_t table, const OwnRates& own) {
    const BatchPtr batch =
        job.client().push_range(table, 0, one, PushAs::Gradient, job.limit(), {}, own);
    const Status status = job.client().wait(batch, job.limit());
    return status.ok() ? "" : status.message();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal(1, {.lr = 1}),
            "table 'w': it has no optimizer, so a push of it has no rate; leave lr out");
  EXPECT_EQ(refusal(2, {.lr = -1}), "table 'w': lr is -1: give 0 or more");
  EXPECT_EQ(refusal(2, {.lr = nan}), "table 'w': lr is nan: give a number that a float holds");
  EXPECT_EQ(refusal(2, {.momentum = 0.5}),
            "table 'w': momentum is 0.5: the optimizer was made without, and has no state for it; "
            "leave it 0");
  EXPECT_NE(refusal(3, {.momentum = 0.5}).find("Adagrad has none"), std::string::npos);
  EXPECT_NE(refusal(4, {.momentum = 0}).find("nesterov"), std::string::npos);
  EXPECT_EQ(refusal(4, {.momentum = 0.25}), "");
  EXPECT_NE(refusal(5, {.momentum = 1}).find("less than 1"), std::string::npos);
  EXPECT_EQ(refusal(5, {.lr = 0.5, .momentum = 0.25}), "");
}

}  // namespace
}  // namespace rdmacoll::ps::client_server_test
