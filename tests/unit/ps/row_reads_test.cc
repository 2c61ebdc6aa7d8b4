// Pulls of rows that a worker reads in its servers' memory: they have what is acknowledged, are of
// one moment, and nothing of a server that has given a bucket away.
#include "csrc/ps/client/row_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stop_token>
#include <thread>
#include <vector>

#include "csrc/ps/table/row_shard.h"
#include "tests/unit/ps/near_job.h"

namespace rdmacoll::ps::row_reads_test {
namespace {

constexpr uint64_t kDim = 24;
constexpr uint64_t kRows = 3000;  // indices grow a few times

class RowsOf : public testing::Test {
 protected:
  explicit RowsOf(uint32_t servers = 1, uint32_t replicas = 1)
      : job_(servers, replicas), ids_(kRows) {
    std::iota(ids_.begin(), ids_.end(), 7);
    const TableSpec spec{.name = "w", .kind = TableKind::Rows, .dim = kDim};
    EXPECT_TRUE(job_.client().create(1, spec).ok());
    pull();  // asks
  }
  std::vector<float> pull() {
    std::vector<float> values(kRows * kDim, -1);
    job_.good(job_.client().pull_rows(1, ids_, values.data(), job_.limit()));
    return values;
  }
  BatchPtr push(const std::vector<float>& values) {
    return job_.client().push_rows(1, ids_, values.data(), PushAs::Gradient, job_.limit());
  }
  uint64_t answered(uint32_t server = 0) const { return job_.stats(server).pulls; }

  NearJob job_;
  std::vector<uint64_t> ids_;
};

TEST_F(RowsOf, TakeNoPartOfAServer) {
  const auto all = counting(kRows * kDim, 1);
  job_.good(push(all));
  const uint64_t before = answered();
  EXPECT_EQ(pull(), all);
  EXPECT_EQ(pull(), all);
  EXPECT_EQ(answered(), before);
}

TEST_F(RowsOf, AreAskedForIfTheyAreNotMadeYet) {
  const auto all = counting(kRows * kDim, 1);
  job_.good(push(all));
  const uint64_t before = answered();
  ids_.back() = kRows + 1000;
  auto values = pull();
  EXPECT_EQ(answered(), before + 1);
  EXPECT_TRUE(std::equal(all.begin(), all.end() - kDim, values.begin()));
  EXPECT_EQ(std::vector<float>(values.end() - kDim, values.end()), std::vector<float>(kDim));
  pull();
  EXPECT_EQ(answered(), before + 1);
}

TEST_F(RowsOf, AreAskedForBeforeAnOwnPushIsAcknowledged) {
  const auto all = counting(kRows * kDim, 1);
  const uint64_t before = answered();
  const BatchPtr open = push(all);
  EXPECT_EQ(pull(), all);
  EXPECT_GT(answered(), before);
  job_.good(open);
}

class RowsOfTwo : public RowsOf {
 protected:
  RowsOfTwo() : RowsOf(2, 2) {}
};

TEST_F(RowsOfTwo, AreNotThereOnceTheyWereHandedOver) {
  const auto all = counting(kRows * kDim, 1);
  job_.good(push(all));
  job_.hand_over(0);
  EXPECT_EQ(pull(), all);  // what is hidden is asked for where it is now
  job_.good(push(all));
  auto twice = all;
  for (float& value : twice) value *= 2;
  EXPECT_EQ(pull(), twice);
  const uint64_t before = answered(1);
  EXPECT_EQ(pull(), twice);
  EXPECT_EQ(answered(1), before);
}

TEST_F(RowsOfTwo, AreOfTheBackupOnceThePrimaryIsLost) {
  const auto all = counting(kRows * kDim, 1);
  job_.good(push(all));
  job_.kill(0);
  EXPECT_EQ(pull(), all);
  job_.good(push(all));
  EXPECT_EQ(pull()[1], 2 * all[1]);
}

// --- of one moment -------------------------------------------------------------------------------

// All elements of a row are the same at each moment. Another thread pushes to them, makes more, has
// the bucket forgotten and made anew.
TEST(RowReads, AreOfOneMomentWhateverTheServerDoes) {
  constexpr uint64_t kIds = 64;
  constexpr uint64_t kLong = 1024;
  const TableSpec spec{.name = "w", .kind = TableKind::Rows, .dim = kLong};
  NearJob job(1);  // its Surroundings
  HeapMemory& heap = job.memory();
  Steps steps(spec);
  RowMemory memory([&](uint64_t bytes) { return heap.take_for_rows(1, bytes); }, heap.row_bytes());
  std::vector<uint64_t> ids;  // of one bucket
  for (uint64_t id = 0; ids.size() < kIds; ++id) {
    if (bucket_of_row(1, id) == 5) ids.push_back(id);
  }
  const std::vector<float> ones(kLong, 1);
  const Rates rates = rates_of(steps.optimizer());
  const auto play = [&](uint64_t pushes) {
    RowShard shard(spec, 5, steps, memory);
    for (const uint64_t id : ids) shard.push(PushAs::Gradient, id, ones.data(), rates);
    shard.show();
    for (uint64_t i = 0; i < pushes * kIds; ++i) {
      shard.push(PushAs::Gradient, ids[i % kIds], ones.data(), rates);
      for (int rest = 0; rest < 3'000; ++rest) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  };
  play(0);  // takes all the memory that there will be
  RowReads reads(job);
  reads.learn(1, 0, memory.directory_place());
  const std::jthread server([&](const std::stop_token& over) {
    while (!over.stop_requested()) play(20);
  });
  uint64_t found = 0;
  const Deadline deadline = Deadline::after_ms(job.clock(), kSoonMs);
  while (found < 50'000 && !deadline.passed(job.clock())) {
    std::vector<float> values(kIds * kLong);
    std::vector<uint32_t> left(kIds);
    std::iota(left.begin(), left.end(), 0);
    reads.read({1, ids, reinterpret_cast<std::byte*>(values.data()), kLong * sizeof(float)},
               BucketMap::spread(1, 1), job.limit(), left);
    std::vector<bool> is_left(kIds);
    for (const uint32_t row : left) is_left[row] = true;
    for (uint64_t i = 0; i < kIds; ++i) {
      if (is_left[i]) continue;
      ++found;
      const auto row = values.begin() + static_cast<ptrdiff_t>(i * kLong);
      ASSERT_TRUE(std::all_of(row, row + kLong, [&](float one) { return one == *row; })) << *row;
      ASSERT_TRUE(*row >= 1 && *row <= 21) << *row;
    }
  }
  EXPECT_GT(found, 1'000u);
}

}  // namespace
}  // namespace rdmacoll::ps::row_reads_test
