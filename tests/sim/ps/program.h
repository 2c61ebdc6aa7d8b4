// Program: what a worker of the simulation does, and Audit: what all pulls are held against.
// Gradients and rates are integers, so a table is minus the sum of what was pushed, each times its
// rate, bit for bit. Floor: tests. Thread: one at a time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/table/saved.h"
#include "tests/sim/ps/ps_world.h"

namespace rdmacoll::ps {

// What was pushed, by table and by element or id.
class Audit {
 public:
  using Place = std::pair<uint32_t, uint64_t>;
  struct Sums {
    int64_t asked = 0;  // acknowledged or not
    void ask(const void* who, int64_t gradient) {
      asked += gradient;
      asked_by[who] += gradient;
    }
    int64_t acknowledged = 0;
    std::map<const void*, int64_t> asked_by{};  // a program
  };
  Sums& of(uint32_t table, uint64_t place) { return sums_[{table, place}]; }
  std::map<Place, Sums>& all() { return sums_; }

 private:
  std::map<Place, Sums> sums_;
};

// A worker's program: pushes and pulls in turn, some of them under way at a time.
class Program {
 public:
  static constexpr uint32_t kDenseTables = 3;
  static constexpr uint32_t kElements = 8;
  static constexpr uint32_t kRows = kDenseTables;  // the table of rows
  static constexpr uint64_t kIds = 24;
  static constexpr int kOperations = 25;
  static constexpr float kNoGradient = 1'000'000;
  static constexpr int64_t kLimitMs = 1'000'000'000;

  Program(PsWorld& world, Audit& audit, Client& client)
      : world_(world), audit_(audit), client_(client) {}

  // goes_on: whether there is more to be done than a program's own operations.
  void run(const std::function<bool()>& goes_on) {
    create();
    for (int i = 0; (i < kOperations || goes_on()) && !testing::Test::HasFailure(); ++i) {
      const uint64_t what = world_.draw(6);
      if (what < 2) push_range();
      if (what == 2 || what == 3) push_rows();
      if (what == 4) pull_range();
      if (what == 5) pull_rows();
      if (world_.draw(3) == 0) confirm();
      if (world_.draw(100) == 0) use_new_table();
    }
    confirm();
  }
  // Pulls of dense tables alone, or of rows: it asks no server for long, so it hears of nothing.
  void watch(TableKind kind, const std::function<bool()>& goes_on) {
    create();
    while (goes_on() && !testing::Test::HasFailure()) {
      if (kind == TableKind::Rows) {
        check_rows([&](const auto& ids) { return pulled(ids); });
        continue;
      }
      check_range(static_cast<uint32_t>(world_.draw(kDenseTables)),
                  [&](uint32_t table) { return pulled(table); });
    }
  }
  void pull_all() {
    for (uint32_t table = 0; table < kDenseTables; ++table) pull_range(table);
    pull_rows();
    for (const uint32_t table : world_.dropped()) see_dropped(table);
  }
  void create() {
    const Optimizer descends{.kind = OptimizerKind::Sgd, .lr = 1};
    for (uint32_t table = 0; table < kDenseTables; ++table) {
      good(client_.create(
          table,
          {.name = "dense" + std::to_string(table), .elements = kElements, .optimizer = descends}));
    }
    good(client_.create(
        kRows, {.name = "rows", .kind = TableKind::Rows, .dim = 1, .optimizer = descends}));
  }

 private:
  // Servers that hear of it answer nothing of it any more, whoever is asked.
  void see_dropped(uint32_t table) {
    good(client_.create(table, {.name = "new" + std::to_string(table), .elements = kElements}));
    Status status;
    while (status.ok()) {
      std::vector<float> values(kElements);
      status = client_.wait(client_.pull_range(table, 0, values, limit()), limit());
    }
    EXPECT_TRUE(is_dropped(status)) << status.message();
  }
  // What a pull that is asked for now must have.
  struct Due {
    int64_t acknowledged = 0;
    int64_t own = 0;  // where no server is lost until it has ended
  };
  using Pushed = std::vector<std::pair<Audit::Place, int64_t>>;
  using Lent = std::span<float>;
  // So much of the memory that this worker lends; empty: what is under way has all of it.
  Lent unused_lent(uint64_t count) {
    const Lent all = Lent(world_.lent(client_)).first(PsWorld::kLentElements);
    for (uint64_t at = 0; at + kElements <= all.size(); at += kElements) {
      const auto is_there = [&](const Open& open) { return open.lent.data() == &all[at]; };
      if (std::ranges::none_of(open_, is_there)) return all.subspan(at, count);
    }
    return {};
  }
  Limit limit() const { return {Deadline::after_ms(world_.clock(), kLimitMs), {}}; }
  void good(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

  // Servers that were started again have to learn of it.
  void use_new_table() {
    const auto beside = static_cast<uint32_t>(world_.draw(kDenseTables));
    const uint32_t table = world_.new_table(bucket_of_shard(beside, 0));
    good(client_.create(table, {.name = "new" + std::to_string(table), .elements = kElements}));
    const std::vector<float> ones(kElements, 1.0f);
    good(client_.wait(client_.push_range(table, 0, ones, PushAs::Gradient, limit()), limit()));
    std::vector<float> values(kElements);
    good(client_.wait(client_.pull_range(table, 0, values, limit()), limit()));
    EXPECT_EQ(values, ones);
    // What is restored is pushed, too.
    std::vector<float> saved(kCountFloats + kElements, 5.0f);
    good(client_.wait(client_.restore_shard(table, 0, saved, limit()), limit()));
    good(client_.wait(client_.push_range(table, 0, ones, PushAs::Gradient, limit()), limit()));
    good(client_.wait(client_.pull_range(table, 0, values, limit()), limit()));
    EXPECT_EQ(values, std::vector<float>(kElements, 6.0f));
    if (world_.draw(2) == 0) drop(table, ones);
  }
  // What is pushed before and after is taken or refused, and what else is in the bucket goes on.
  void drop(uint32_t table, const std::vector<float>& values) {
    const auto push = [&] {
      return client_.push_range(table, 0, values, PushAs::Gradient, limit());
    };
    const BatchPtr before = push();
    world_.drop(table);
    for (const BatchPtr& pushed : {before, push(), push()}) {
      const Status status = client_.wait(pushed, limit());
      EXPECT_TRUE(status.ok() || is_dropped(status)) << status.message();
    }
  }
  static bool is_dropped(const Status& status) {
    return status.code() == StatusCode::InvalidArgument &&
           status.message().find("was dropped; make it anew") != std::string::npos;
  }
  // That of the table is 1.
  OwnRates any_rates() {
    const uint64_t rate = world_.draw(4);
    return rate < 2 ? OwnRates{} : OwnRates{.lr = static_cast<double>(rate)};
  }
  static int64_t of_rate(int64_t gradient, const OwnRates& rates) {
    return gradient * static_cast<int64_t>(rates.lr.value_or(1));
  }
  void push_range() {
    const auto table = static_cast<uint32_t>(world_.draw(kDenseTables));
    const uint64_t first = world_.draw(kElements);
    const auto gradient = static_cast<int64_t>(1 + world_.draw(5));
    const std::vector<float> values(kElements - first, static_cast<float>(gradient));
    const OwnRates rates = any_rates();
    Pushed pushed;
    for (uint64_t i = first; i < kElements; ++i) {
      pushed.push_back({{table, i}, of_rate(gradient, rates)});
    }
    note(pushed);
    const std::span<float> lent = world_.draw(2) == 0 ? unused_lent(values.size()) : Lent();
    if (!lent.empty()) std::ranges::copy(values, lent.begin());
    const std::span<const float> pushes = lent.empty() ? std::span<const float>(values) : lent;
    open_.push_back({client_.push_range(table, first, pushes, PushAs::Gradient, limit(), {}, rates),
                     std::move(pushed), lent});
  }
  void push_rows() {
    std::vector<uint64_t> ids(1 + world_.draw(8));
    std::vector<float> values;
    const OwnRates rates = any_rates();
    Pushed pushed;
    for (uint64_t& id : ids) {
      id = world_.draw(kIds);
      values.push_back(static_cast<float>(1 + world_.draw(5)));
      pushed.push_back({{kRows, id}, of_rate(static_cast<int64_t>(values.back()), rates)});
    }
    note(pushed);
    open_.push_back({client_.push_rows(kRows, ids, values.data(), PushAs::Gradient, limit(), rates),
                     std::move(pushed), Lent()});
  }
  void note(const Pushed& pushed) {
    for (const auto& [place, gradient] : pushed)
      audit_.of(place.first, place.second).ask(this, gradient);
  }
  // What is open has ended; only then it is acknowledged.
  void confirm() {
    for (const auto& [batch, pushed, lent] : std::exchange(open_, {})) {
      good(client_.wait(batch, limit()));
      std::ranges::fill(lent, kNoGradient);  // it may be changed now
      for (const auto& [place, gradient] : pushed) {
        audit_.of(place.first, place.second).acknowledged += gradient;
      }
    }
  }
  void pull_range() { pull_range(static_cast<uint32_t>(world_.draw(kDenseTables))); }
  void pull_range(uint32_t of) {
    check_range(of,
                [&](uint32_t table) { return world_.draw(3) == 0 ? saved(table) : pulled(table); });
  }
  std::vector<float> pulled(uint32_t table) {
    std::vector<float> values(kElements);
    good(client_.wait(client_.pull_range(table, 0, values, limit()), limit()));
    return values;
  }
  std::vector<float> saved(uint32_t table) {
    std::vector<float> all(kCountFloats + kElements);
    good(client_.wait(client_.save_shard(table, 0, all, limit()), limit()));
    return {all.begin() + kCountFloats, all.end()};
  }
  template <typename Values>
  void check_range(uint32_t table, Values values_of) {
    std::vector<Due> before;
    for (uint64_t i = 0; i < kElements; ++i) before.push_back(due(audit_.of(table, i)));
    const std::vector<float> values = values_of(table);
    for (uint64_t i = 0; i < kElements; ++i) check({table, i}, before[i], values[i]);
  }
  void pull_rows() {
    if (world_.draw(3) != 0) return check_rows([&](const auto& ids) { return pulled(ids); });
    const uint64_t id = world_.draw(kIds);
    const int64_t acknowledged = audit_.of(kRows, id).acknowledged;
    check_rows([&](const auto& ids) { return saved(ids); });
    check_list(id, acknowledged);
  }
  std::vector<float> pulled(const std::vector<uint64_t>& ids) {
    std::vector<float> values(ids.size());
    good(client_.wait(client_.pull_rows(kRows, ids, values.data(), limit()), limit()));
    return values;
  }
  std::vector<float> saved(const std::vector<uint64_t>& ids) {
    std::vector<float> all(ids.size() * (kCountFloats + 1));
    good(client_.wait(client_.save_rows(kRows, ids, all.data(), limit()), limit()));
    std::vector<float> values(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) values[i] = all[i * (kCountFloats + 1) + kCountFloats];
    return values;
  }
  template <typename Values>
  void check_rows(Values values_of) {
    std::vector<uint64_t> ids(kIds);
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<Due> before;
    for (const uint64_t id : ids) before.push_back(due(audit_.of(kRows, id)));
    const std::vector<float> values = values_of(ids);
    for (const uint64_t id : ids) check({kRows, id}, before[id], values[id]);
  }
  // A row that was pushed to is there, whoever has its bucket by now.
  void check_list(uint64_t id, int64_t acknowledged) {
    std::vector<uint64_t> listed(1 + kIds);
    const uint32_t bucket = bucket_of_row(kRows, id);
    good(client_.wait(client_.list_rows(kRows, bucket, id, listed, limit()), limit()));
    const bool is_listed = listed[0] > 0 && listed[1] == id;
    ASSERT_TRUE(is_listed || acknowledged == 0) << "row " << id << " is lost";
  }
  Due due(Audit::Sums& sums) const { return {sums.acknowledged, sums.asked_by[this]}; }
  void check(const Audit::Place& place, const Due& before, float value) {
    const auto sum = static_cast<int64_t>(-value);
    ASSERT_GE(sum, before.acknowledged)
        << "a pull has not what was acknowledged before it, of table " << place.first << ", "
        << place.second;
    ASSERT_TRUE(!world_.is_undisturbed() || sum >= before.own)
        << "a pull has not what its worker has pushed, of table " << place.first << ", "
        << place.second;
    ASSERT_LE(sum, audit_.of(place.first, place.second).asked)
        << "something was applied twice, of table " << place.first << ", " << place.second;
  }

  PsWorld& world_;
  Audit& audit_;
  Client& client_;
  struct Open {
    BatchPtr batch;
    Pushed pushed;
    Lent lent;  // in which its values are; empty: they were sent
  };
  std::vector<Open> open_;
};

}  // namespace rdmacoll::ps
