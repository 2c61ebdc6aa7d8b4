// Tables whose workers go in step: what a shard makes of their gradients, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "csrc/ps/table/dense_shard.h"
#include "csrc/ps/wire/push.h"

namespace rdmacoll::ps::pace_test {
namespace {

constexpr uint64_t kElements = 6;
constexpr uint64_t kPushed = 5;

TableSpec spec_of(bool is_sync) {
  TableSpec spec{.name = "paced", .elements = kElements};
  spec.optimizer = Optimizer{.kind = OptimizerKind::Sgd, .lr = 1};
  spec.pace = Pace{kPushed, is_sync};
  return spec;
}

class Shard {
 public:
  explicit Shard(const TableSpec& spec)
      : memory_(DenseShard::memory_bytes(spec, 0) / sizeof(Line)), shard_(spec, 0, {data()}) {
    shard_.begin_generation({1, 3}, 0);
  }
  void push(uint32_t rank, uint32_t step, float value, double lr = 1) {
    const std::vector<float> values(kPushed, value);
    shard_.push_step({rank, step, 1}, {values, {.lr = lr}});
  }
  float value() const { return shard_.values()[kPushed - 1]; }
  DenseShard& operator*() { return shard_; }

 private:
  struct alignas(kLineBytes) Line {
    std::byte bytes[kLineBytes]{};
  };
  std::byte* data() { return memory_.front().bytes; }

  std::vector<Line> memory_;
  DenseShard shard_;
};

TEST(Pace, StepsWithTheMeanInTheOrderOfRanksWhoeverComesFirst) {
  // (a + b) + c has other bits than any other order.
  const float a = 1e8f, b = -1e8f, c = 1.0f;
  const float expected = -(((a + b) + c) / 3);
  for (const std::vector<uint32_t>& order :
       {std::vector<uint32_t>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}}) {
    Shard shard(spec_of(true));
    for (const uint32_t rank : order) {
      EXPECT_EQ(shard.value(), 0);
      shard.push(rank, 1, std::vector<float>{a, b, c}[rank]);
    }
    EXPECT_EQ(shard.value(), expected);
    EXPECT_EQ((*shard).pushes(), 1u);
    EXPECT_EQ((*shard).pace()->slowest(), 1u);
    EXPECT_TRUE((*shard).pace()->gathered().empty());
    EXPECT_EQ((*shard).values()[kPushed], 0);
  }
}

TEST(Pace, KeepsStepsApartAndPassesOverThoseThatComeAgain) {
  Shard shard(spec_of(true));
  shard.push(0, 1, 3);
  shard.push(0, 1, 300);  // of a worker that was started again
  shard.push(0, 2, 30);
  shard.push(1, 1, 3);
  shard.push(1, 2, 30);
  EXPECT_EQ(shard.value(), 0);
  shard.push(2, 1, 3);
  EXPECT_EQ(shard.value(), -3);
  EXPECT_EQ((*shard).pace()->slowest(), 1u);
  shard.push(2, 2, 30);
  EXPECT_EQ(shard.value(), -33);
}

TEST(Pace, StepsAtOnceForEachWorkerWhereNotBulkSynchronous) {
  Shard shard(spec_of(false));
  shard.push(1, 1, 2);
  EXPECT_EQ(shard.value(), -2);
  shard.push(1, 2, 2);
  shard.push(0, 1, 5);
  EXPECT_EQ(shard.value(), -9);
  EXPECT_EQ((*shard).pace()->slowest(), 0u);
  shard.push(2, 1, 1);
  EXPECT_EQ((*shard).pace()->slowest(), 1u);
}

TEST(Pace, StepsWithTheRateOfRank0WhoeverComesLast) {
  for (const std::vector<uint32_t>& order : {std::vector<uint32_t>{0, 1, 2}, {2, 1, 0}}) {
    Shard shard(spec_of(true));
    for (const uint32_t rank : order) shard.push(rank, 1, 3, rank == 0 ? 2 : 50 * rank);
    EXPECT_EQ(shard.value(), -6);
  }
  Shard shard(spec_of(false));
  shard.push(1, 1, 3, 50);
  EXPECT_EQ(shard.value(), -150) << "each steps for itself";
}

TEST(Pace, GoesOnAfterTheLastWholeStepWithAnotherNumberOfWorkers) {
  Shard shard(spec_of(true));
  for (const uint32_t rank : {0, 1, 2}) shard.push(rank, 1, 3);
  shard.push(0, 2, 300);  // which is never whole
  (*shard).begin_generation({3, 2}, 99);
  PaceSteps& pace = *(*shard).pace();
  EXPECT_EQ(pace.reached(), (std::vector<uint32_t>{1, 1}));
  EXPECT_TRUE(pace.gathered().empty());
  EXPECT_TRUE(pace.is_of_it({1, 2, 3}));
  EXPECT_FALSE(pace.is_of_it({2, 2, 3})) << "no such rank";
  EXPECT_FALSE(pace.is_of_it({1, 2, 1})) << "of the generation before";
  (*shard).begin_generation({2, 5}, 0);
  EXPECT_EQ(pace.reached().size(), 2u) << "an earlier one comes late";
  const std::vector<float> gradient(kPushed, 10);
  (*shard).push_step({1, 2, 3}, {gradient, {.lr = 1}});
  EXPECT_EQ(shard.value(), -3);
  (*shard).push_step({0, 2, 3}, {gradient, {.lr = 1}});
  EXPECT_EQ(shard.value(), -13);
  (*shard).begin_generation({4, 4}, 0);
  EXPECT_EQ(pace.reached(), (std::vector<uint32_t>{2, 2, 2, 2}));
}

TEST(Pace, GoesOnWhereItIsToldToIfEachWorkerStepsForItself) {
  Shard shard(spec_of(false));
  shard.push(0, 1, 3);
  shard.push(0, 2, 3);
  (*shard).begin_generation({2, 2}, 3);
  EXPECT_EQ((*shard).pace()->reached(), (std::vector<uint32_t>{3, 3}));
  EXPECT_EQ(shard.value(), -6);
}

TEST(Pace, HasMadeNoStepBeforeItIsKnownWhoGoes) {
  const PaceSteps pace;
  EXPECT_EQ(pace.slowest(), 0u);
  EXPECT_FALSE(pace.is_of_it({0, 1, 1}));
}

TEST(Pace, IsAPartOfTheSpec) {
  const TableSpec spec = spec_of(true);
  auto parsed = parse_table_spec(encode(spec));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().pace->elements, kPushed);
  EXPECT_TRUE(parsed.value().pace->is_sync);
  TableSpec wrong = spec;
  wrong.pace = Pace{kElements + 1, true};
  EXPECT_NE(check(wrong).message().find("7 of its elements"), std::string::npos);
  wrong = {.name = "r", .kind = TableKind::Rows, .dim = 1};
  wrong.pace = Pace{1, true};
  EXPECT_NE(check(wrong).message().find("dense tables"), std::string::npos);
}

// What is read of a record that pushes so many elements of shard 0 as a step.
bool is_push(const TableSpec& spec, RecordHead head, uint64_t elements) {
  head.kind = RecordKind::Push;
  head.parts = 1;
  head.count = static_cast<uint32_t>(elements);
  const Rates rates = rates_of(*spec.optimizer);
  const uint64_t of_rates = rates_bytes(static_cast<PushAs>(head.code));
  std::vector<std::byte> body(sizeof(PushPart) + elements * sizeof(float) + of_rates);
  std::memcpy(body.data() + body.size() - of_rates, &rates, of_rates);
  const PushPart part{.bucket = bucket_of_shard(head.table, head.shard), .push = 1};
  std::memcpy(body.data(), &part, sizeof(part));
  return read_push({head, body}, spec).has_value();
}

TEST(Pace, RefusesPushesThatDoNotKeepIt) {
  const TableSpec paced = spec_of(true);
  TableSpec free = paced;
  free.pace.reset();
  const auto assigned = static_cast<uint16_t>(PushAs::Assigned);
  EXPECT_TRUE(is_push(paced, {.rank = 2, .step = 1}, kPushed));
  EXPECT_TRUE(is_push(paced, {.code = assigned}, kElements));
  EXPECT_TRUE(is_push(free, {}, kElements));
  EXPECT_FALSE(is_push(paced, {}, kPushed)) << "no step";
  EXPECT_FALSE(is_push(paced, {.step = 1}, kPushed - 1)) << "not all";
  EXPECT_FALSE(is_push(paced, {.step = 1}, kElements)) << "more";
  EXPECT_FALSE(is_push(paced, {.code = assigned, .step = 1}, kElements)) << "values have no step";
  EXPECT_FALSE(is_push(free, {.step = 1}, kElements)) << "a step without a pace";
  const auto generation = static_cast<uint16_t>(PushAs::Generation);
  EXPECT_TRUE(is_push(paced, {.code = generation, .first = 7, .rank = 2}, 0));
  EXPECT_FALSE(is_push(free, {.code = generation, .first = 7, .rank = 2}, 0)) << "no pace";
  EXPECT_FALSE(is_push(paced, {.code = generation, .rank = 2}, 0)) << "no generation";
  EXPECT_FALSE(is_push(paced, {.code = generation, .first = 7}, 0)) << "no worker";
  EXPECT_FALSE(is_push(paced, {.code = generation, .first = 7, .rank = 4097}, 0)) << "too many";
  EXPECT_FALSE(is_push(paced, {.code = generation, .first = 7, .rank = 2}, 1)) << "values";
}

}  // namespace
}  // namespace rdmacoll::ps::pace_test
