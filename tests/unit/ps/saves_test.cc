// What is saved of tables, and restored: in another job with other servers it goes on as it would
// have. What a restore pushes is pushed as anything else: once, and to backups, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "csrc/ps/table/saved.h"
#include "tests/unit/ps/near_job.h"
#include "tests/unit/ps/still_clock.h"

namespace rdmacoll::ps::saves_test {
namespace {

constexpr uint64_t kElements = 3 * kShardElements + 17;
constexpr uint32_t kDim = 5;

TableSpec dense_spec(OptimizerKind kind) {
  Optimizer optimizer{.kind = kind, .lr = 0.5};
  if (kind == OptimizerKind::Sgd) optimizer.momentum = 0.9, optimizer.dampening = 0.5;
  if (kind == OptimizerKind::Adam) optimizer.beta1 = 0.9, optimizer.beta2 = 0.99;
  if (kind != OptimizerKind::Sgd) optimizer.eps = 1e-8;
  return {.name = "w", .elements = kElements, .optimizer = optimizer};
}

TableSpec row_spec(OptimizerKind kind) {
  TableSpec spec = dense_spec(kind);
  spec.kind = TableKind::Rows;
  spec.elements = 0;
  spec.dim = kDim;
  spec.initial = {Initial::Kind::Uniform, -1, 1, 5};
  return spec;
}

using Shards = std::vector<std::vector<float>>;

Shards saved_shards(NearJob& job, const TableSpec& spec) {
  Shards shards(spec.shards());
  for (uint64_t shard = 0; shard < shards.size(); ++shard) {
    const uint64_t array = kCountFloats + spec.shard_elements(shard);
    shards[shard].resize(arrays_of(spec) * array);
    job.good(job.client().save_shard(1, shard, shards[shard], job.limit()));
    for (uint64_t i = 1; i < arrays_of(spec); ++i) {
      EXPECT_EQ(count_at(&shards[shard][i * array]), count_at(shards[shard].data()));
    }
  }
  return shards;
}

void restore(NearJob& job, const Shards& shards) {
  for (uint64_t shard = 0; shard < shards.size(); ++shard) {
    job.good(job.client().restore_shard(1, shard, shards[shard], job.limit()));
  }
}

std::vector<uint64_t> listed(NearJob& job, size_t at_once) {
  std::vector<uint64_t> ids;
  std::vector<uint64_t> page(1 + at_once);
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (uint64_t from = 0;;) {
      job.good(job.client().list_rows(1, bucket, from, page, job.limit()));
      ids.insert(ids.end(), page.begin() + 1, page.begin() + 1 + static_cast<ptrdiff_t>(page[0]));
      if (page[0] < at_once || page[page[0]] == UINT64_MAX) break;
      from = page[page[0]] + 1;
    }
  }
  return ids;
}

std::vector<float> saved_rows(NearJob& job, const TableSpec& spec,
                              const std::vector<uint64_t>& ids) {
  std::vector<float> saved(ids.size() * saved_row_floats(spec));
  job.good(job.client().save_rows(1, ids, saved.data(), job.limit()));
  return saved;
}

class DenseSaves : public testing::TestWithParam<OptimizerKind> {};
class RowSaves : public testing::TestWithParam<OptimizerKind> {};

TEST_P(DenseSaves, LetAnotherJobGoOn) {
  const TableSpec spec = dense_spec(GetParam());
  NearJob first(2), second(3);
  ASSERT_TRUE(first.client().create(1, spec).ok());
  ASSERT_TRUE(second.client().create(1, spec).ok());
  const auto push = [](NearJob& job, float from) {
    job.good(
        job.client().push_range(1, 0, counting(kElements, from), PushAs::Gradient, job.limit()));
  };
  for (float from = 0; from < 3; ++from) push(first, from);
  const Shards saved = saved_shards(first, spec);
  EXPECT_EQ(count_at(saved[0].data()), 3u);
  restore(second, saved);
  EXPECT_EQ(saved_shards(second, spec), saved);
  push(first, 7);
  push(second, 7);
  EXPECT_EQ(saved_shards(second, spec), saved_shards(first, spec));
  EXPECT_NE(saved_shards(second, spec), saved);
}

TEST_P(RowSaves, LetAnotherJobGoOn) {
  const TableSpec spec = row_spec(GetParam());
  NearJob first(3), second(1);
  ASSERT_TRUE(first.client().create(1, spec).ok());
  ASSERT_TRUE(second.client().create(1, spec).ok());
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < 20'000; ++id) ids.push_back(id * 77);
  ids.push_back(UINT64_MAX);
  const auto push = [&](NearJob& job, size_t rows) {
    const std::vector<uint64_t> some(ids.end() - static_cast<ptrdiff_t>(rows), ids.end());
    const auto values = counting(rows * kDim, 1);
    job.good(job.client().push_rows(1, some, values.data(), PushAs::Gradient, job.limit()));
  };
  push(first, ids.size());
  push(first, 500);
  const auto found = listed(first, 7);
  const std::set<uint64_t> distinct(found.begin(), found.end());
  EXPECT_EQ(found.size(), ids.size());
  EXPECT_EQ(distinct, std::set<uint64_t>(ids.begin(), ids.end()));
  EXPECT_EQ(found, listed(first, 1000));
  const auto saved = saved_rows(first, spec, found);
  push(second, ids.size());
  const std::vector<uint64_t> own{5};
  const auto values = counting(kDim, 1);
  second.good(second.client().push_rows(1, own, values.data(), PushAs::Gradient, second.limit()));
  EXPECT_EQ(listed(second, 1000).size(), ids.size() + 1);
  second.good(second.client().empty_rows(1, second.limit()));
  EXPECT_TRUE(listed(second, 1000).empty());
  second.good(second.client().push_rows(1, found, saved.data(), PushAs::Restored, second.limit()));
  EXPECT_EQ(listed(second, 1000), found);
  EXPECT_EQ(saved_rows(second, spec, found), saved);
  push(first, 800);
  push(second, 800);
  EXPECT_EQ(saved_rows(second, spec, found), saved_rows(first, spec, found));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, DenseSaves,
                         testing::Values(OptimizerKind::Sgd, OptimizerKind::Adagrad,
                                         OptimizerKind::Adam));
INSTANTIATE_TEST_SUITE_P(Optimizers, RowSaves,
                         testing::Values(OptimizerKind::Sgd, OptimizerKind::RowwiseAdagrad,
                                         OptimizerKind::Adam));

TEST(Saves, AreAtBackups) {
  const TableSpec dense = dense_spec(OptimizerKind::Adam);
  NearJob job(3, 2);
  ASSERT_TRUE(job.client().create(1, dense).ok());
  Shards shards = saved_shards(job, dense);
  for (auto& shard : shards) {
    std::iota(shard.begin(), shard.end(), 1.0f);
    const uint64_t pushes = 41;
    const uint64_t array = shard.size() / arrays_of(dense);
    for (uint64_t i = 0; i < arrays_of(dense); ++i) {
      std::memcpy(&shard[i * array], &pushes, sizeof(pushes));
    }
  }
  restore(job, shards);
  for (const uint32_t server : {1u, 2u}) {
    job.settle();
    job.kill(server);
    EXPECT_EQ(saved_shards(job, dense), shards) << server;
  }
}

TEST(Saves, OfRowsAreAtBackupsAndNotWhereTheTableIsEmpty) {
  const TableSpec spec = row_spec(OptimizerKind::Adam);
  NearJob job(3, 2);
  ASSERT_TRUE(job.client().create(1, spec).ok());
  std::vector<uint64_t> ids(5'000);
  std::iota(ids.begin(), ids.end(), 1);
  std::vector<float> saved = saved_rows(job, spec, ids);
  for (uint64_t row = 0; row < ids.size(); ++row) {
    std::memcpy(&saved[row * saved_row_floats(spec)], &ids[row], sizeof(uint64_t));
  }
  job.good(job.client().push_rows(1, ids, saved.data(), PushAs::Restored, job.limit()));
  job.kill(1);
  EXPECT_EQ(listed(job, 100).size(), ids.size());
  EXPECT_EQ(saved_rows(job, spec, ids), saved);
  job.good(job.client().empty_rows(1, job.limit()));
  job.settle();
  job.kill(2);
  EXPECT_TRUE(listed(job, 100).empty());
}

// --- what a server is told, record by record -----------------------------------------------------

class Told : public testing::Test {
 protected:
  Told() { server_.adopt(server_.map(), clock_.now_ns()); }
  struct Worker {
    std::shared_ptr<NearConnection> ours;
    uint64_t number = 0;
  };
  Worker worker() {
    auto [ours, theirs] = near_connections();
    server_.add(theirs);
    return {ours};
  }
  struct Said {
    RecordHead head;
    std::vector<float> floats;
  };
  Said ask(Worker& worker, RecordHead head, const std::string& body) {
    std::memcpy(worker.ours->room(body.size()), body.data(), body.size());
    head.bytes = static_cast<uint32_t>(body.size());
    head.number = ++worker.number;
    worker.ours->send(head);
    server_.turn();
    Record record;
    EXPECT_TRUE(worker.ours->take(record));
    Said said{record.head, std::vector<float>(record.body.size() / sizeof(float))};
    if (record.head.code == 0 && !said.floats.empty()) {
      std::memcpy(said.floats.data(), record.body.data(), record.body.size());
    }
    worker.ours->give_back(record);
    return said;
  }
  template <typename T>
  static std::string bytes_of(const T* values, size_t count) {
    return {reinterpret_cast<const char*>(values), count * sizeof(T)};
  }
  Said push(Worker& worker, uint64_t push, PushAs as, const std::vector<float>& floats) {
    const PushPart part{.bucket = bucket_of_shard(1, 0), .push = push};
    const RecordHead head{.kind = RecordKind::Push,
                          .code = static_cast<uint16_t>(as),
                          .table = 1,
                          .parts = 1,
                          .count = kFew,
                          .worker = 1};
    const Rates rates = rates_of(*dense_spec(OptimizerKind::Adam).optimizer);
    return ask(worker, head,
               bytes_of(&part, 1) + bytes_of(floats.data(), floats.size()) +
                   bytes_of(&rates, 1).substr(0, rates_bytes(as)));
  }
  Said save(Worker& worker, uint32_t array, uint32_t count = kFew) {
    return ask(worker, {.kind = RecordKind::SaveShard, .table = 1, .first = array, .count = count},
               "");
  }

  static constexpr uint32_t kFew = 4;
  const StillClock clock_;
  HeapMemory memory_;
  Server server_{0, 1, BucketMap::spread(1, 1), memory_, clock_};
};

TEST_F(Told, TwiceToRestoreItDoesSoOnce) {
  TableSpec spec = dense_spec(OptimizerKind::Adam);
  spec.elements = kFew;
  Worker one = worker();
  const std::string encoded = encode(spec);
  ask(one, {.kind = RecordKind::Create, .table = 1}, encoded);
  std::vector<float> all = counting(kCountFloats + 3 * kFew, 1);
  const uint64_t pushes = 9;
  std::memcpy(all.data(), &pushes, sizeof(pushes));
  EXPECT_EQ(push(one, 1, PushAs::Restored, all).head.kind, RecordKind::Done);
  EXPECT_EQ(count_at(save(one, 0).floats.data()), 9u);
  EXPECT_EQ(save(one, 2).floats[kCountFloats], 11.0f);
  push(one, 2, PushAs::Gradient, counting(kFew, 1));
  const std::vector<float> after = save(one, 0).floats;
  EXPECT_EQ(count_at(after.data()), 10u);
  EXPECT_EQ(push(one, 1, PushAs::Restored, all).head.kind, RecordKind::Done);
  EXPECT_EQ(save(one, 0).floats, after);
}

TEST_F(Told, OfOthersMeanwhileItSaysOneVersionOfAShard) {
  TableSpec spec = dense_spec(OptimizerKind::Adam);
  spec.elements = kFew;
  Worker saver = worker(), pusher = worker();
  ask(saver, {.kind = RecordKind::Create, .table = 1}, encode(spec));
  push(pusher, 1, PushAs::Gradient, counting(kFew, 1));
  const auto values = save(saver, 0).floats;
  push(pusher, 2, PushAs::Gradient, counting(kFew, 1));
  const auto first = save(saver, 1).floats;
  push(pusher, 3, PushAs::Gradient, counting(kFew, 1));
  const auto second = save(saver, 2).floats;
  EXPECT_EQ(count_at(values.data()), 1u);
  EXPECT_EQ(count_at(first.data()), 1u);
  EXPECT_EQ(count_at(second.data()), 1u);
  EXPECT_NEAR(first.back(), 0.1f * kFew, 1e-5);
  EXPECT_EQ(count_at(save(saver, 0).floats.data()), 3u);
}

TEST_F(Told, WhatMakesNoSenseItRefuses) {
  TableSpec spec = dense_spec(OptimizerKind::Adam);
  spec.elements = kFew;
  Worker one = worker();
  ask(one, {.kind = RecordKind::Create, .table = 1}, encode(spec));
  ask(one, {.kind = RecordKind::Create, .table = 2}, encode(row_spec(OptimizerKind::Adam)));
  const auto refused = static_cast<uint16_t>(StatusCode::InvalidArgument);
  EXPECT_EQ(save(one, 3).head.code, refused);
  EXPECT_EQ(save(one, 0, kFew - 1).head.code, refused);
  EXPECT_EQ(push(one, 1, PushAs::Restored, counting(kFew, 1)).head.code, refused);
  const RecordHead list{.kind = RecordKind::ListRows, .table = 2, .shard = 1, .count = 5};
  const std::string from(sizeof(uint64_t), '\0');
  EXPECT_EQ(ask(one, list, from).head.kind, RecordKind::Values);
  EXPECT_EQ(ask(one, list, "").head.code, refused);
  RecordHead bad = list;
  bad.shard = kBuckets;
  EXPECT_EQ(ask(one, bad, from).head.code, refused);
  bad = list;
  bad.count = UINT32_MAX;
  EXPECT_EQ(ask(one, bad, from).head.code, refused);
  bad = list;
  bad.table = 1;
  EXPECT_EQ(ask(one, bad, from).head.code, refused);
}

}  // namespace
}  // namespace rdmacoll::ps::saves_test
