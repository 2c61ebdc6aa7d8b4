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
  spec.pace = Pace{3, kPushed, is_sync};
  return spec;
}

class Shard {
 public:
  explicit Shard(const TableSpec& spec)
      : memory_(DenseShard::memory_bytes(spec, 0) / sizeof(Line)), shard_(spec, 0, {data()}) {}
  void push(uint32_t rank, uint32_t step, float value) {
    shard_.push_step({rank, step}, std::vector<float>(kPushed, value));
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

TEST(Pace, IsAPartOfTheSpec) {
  const TableSpec spec = spec_of(true);
  auto parsed = parse_table_spec(encode(spec));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().pace->workers, 3u);
  EXPECT_EQ(parsed.value().pace->elements, kPushed);
  EXPECT_TRUE(parsed.value().pace->is_sync);
  TableSpec wrong = spec;
  wrong.pace->workers = 0;
  EXPECT_NE(check(wrong).message().find("0 workers"), std::string::npos);
  wrong.pace = Pace{2, kElements + 1, true};
  EXPECT_NE(check(wrong).message().find("7 of its elements"), std::string::npos);
  wrong = {.name = "r", .kind = TableKind::Rows, .dim = 1};
  wrong.pace = Pace{2, 1, true};
  EXPECT_NE(check(wrong).message().find("dense tables"), std::string::npos);
}

// What is read of a record that pushes so many elements of shard 0 as a step.
bool is_push(const TableSpec& spec, RecordHead head, uint64_t elements) {
  head.kind = RecordKind::Push;
  head.parts = 1;
  head.count = static_cast<uint32_t>(elements);
  std::vector<std::byte> body(sizeof(PushPart) + elements * sizeof(float));
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
  EXPECT_FALSE(is_push(paced, {.rank = 3, .step = 1}, kPushed)) << "no such rank";
  EXPECT_FALSE(is_push(paced, {.step = 1}, kPushed - 1)) << "not all";
  EXPECT_FALSE(is_push(paced, {.step = 1}, kElements)) << "more";
  EXPECT_FALSE(is_push(paced, {.code = assigned, .step = 1}, kElements)) << "values have no step";
  EXPECT_FALSE(is_push(free, {.step = 1}, kElements)) << "a step without a pace";
}

}  // namespace
}  // namespace rdmacoll::ps::pace_test
