// What a primary does while its backup has not confirmed a push: the test is the backup, and the
// workers. A simulation of thousands of seeds meets this once or twice.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/server/server.h"
#include "tests/unit/ps/heap_memory.h"
#include "tests/unit/ps/near_connections.h"
#include "tests/unit/ps/still_clock.h"

namespace rdmacoll::ps::unconfirmed_test {
namespace {

constexpr uint64_t kElements = 4;

// One end of a connection that the server has the other end of.
class End {
 public:
  explicit End(std::shared_ptr<NearConnection> ours) : ours_(std::move(ours)) {}
  void say(RecordHead head, const std::string& body) {
    std::memcpy(ours_->room(body.size()), body.data(), body.size());
    head.bytes = static_cast<uint32_t>(body.size());
    ours_->send(head);
  }
  std::optional<RecordHead> heard() {
    Record record;
    if (!ours_->take(record)) return std::nullopt;
    ours_->give_back(record);
    return record.head;
  }

 private:
  const std::shared_ptr<NearConnection> ours_;
};

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

class Unconfirmed : public testing::Test {
 protected:
  Unconfirmed() {
    while (map_.of(bucket_of_shard(table_, 0)).primary != 0) ++table_;
    server_.adopt(map_, clock_.now_ns());
    server_.add_backup(1, at_backup_.first);
    server_.add(at_worker_.second);
    server_.add(at_other_.second);
    const TableSpec spec{.name = "w",
                         .elements = kElements,
                         .optimizer = Optimizer{.kind = OptimizerKind::Sgd, .lr = 1},
                         .pace = Pace{kElements, true}};
    worker_.say({.kind = RecordKind::Create, .table = table_}, encode(spec));
    RecordHead begins = push_head(PushAs::Generation);
    begins.rank = 2;  // workers
    worker_.say(begins, bytes_of(part(1)));
    server_.turn();
    confirm_all();
    server_.turn();
    while (worker_.heard()) {
    }
  }
  RecordHead push_head(PushAs as) const {
    return {.kind = RecordKind::Push,
            .code = static_cast<uint16_t>(as),
            .table = table_,
            .parts = 1,
            .first = 1,  // generation
            .worker = 1};
  }
  PushPart part(uint64_t push) const {
    return {.bucket = bucket_of_shard(table_, 0), .push = push};
  }
  void push_step() {
    RecordHead head = push_head(PushAs::Gradient);
    head.count = kElements;
    head.step = 1;
    const std::string values(kElements * sizeof(float), '\0');
    worker_.say(head, bytes_of(part(2)) + values + bytes_of(Rates{.lr = 1}));
    server_.turn();
  }
  // The backup answers all that it was told.
  void confirm_all(StatusCode how = StatusCode::Ok) {
    while (const auto told = backup_.heard()) {
      backup_.say(
          {.kind = RecordKind::Done, .code = static_cast<uint16_t>(how), .number = told->number},
          "");
    }
  }
  // As the backup, once it has been told of the bucket.
  bool is_wished_for() const {
    const auto wish = server_.wish();
    return wish && has_backup(wish);
  }
  bool has_backup(const std::optional<BucketMap>& wish) const {
    return (wish ? *wish : map_).of(bucket_of_shard(table_, 0)).backup == 1;
  }

  using Pair = std::pair<std::shared_ptr<NearConnection>, std::shared_ptr<NearConnection>>;
  const BucketMap map_ = BucketMap::spread(2, 2);
  uint32_t table_ = 1;
  const StillClock clock_;
  HeapMemory memory_;
  Server server_{0, 2, map_, memory_, clock_};
  Pair at_backup_ = near_connections(), at_worker_ = near_connections(),
       at_other_ = near_connections();
  End backup_{at_backup_.second}, worker_{at_worker_.first}, other_{at_other_.first};
};

TEST_F(Unconfirmed, StepsAreNotSaid) {
  push_step();
  other_.say({.kind = RecordKind::PullSteps, .table = table_, .count = 2}, "");
  server_.turn();
  EXPECT_FALSE(other_.heard().has_value());
  confirm_all();
  server_.turn();
  server_.turn();
  const auto said = other_.heard();
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->kind, RecordKind::Values);
}

TEST_F(Unconfirmed, PushesOfAWorkerThatIsGoneAreWaitedForAllTheSame) {
  push_step();
  at_worker_.second->fail();
  server_.turn();
  EXPECT_TRUE(has_backup(server_.wish()));
  confirm_all(StatusCode::Unsupported);
  server_.turn();
  EXPECT_FALSE(has_backup(server_.wish())) << "the backup lacks a push, and nobody notices";
}

TEST_F(Unconfirmed, PushesOfAWorkerThatIsGoneEndWhenTheyAreConfirmed) {
  push_step();
  at_worker_.second->fail();
  confirm_all();
  server_.turn();
  EXPECT_TRUE(has_backup(server_.wish()));
  other_.say({.kind = RecordKind::PullSteps, .table = table_, .count = 2}, "");
  server_.turn();
  EXPECT_TRUE(other_.heard().has_value());
}

// Who is told of a bucket is handed its pushes. The map that names it may have been asked for
// before it refused one.
TEST_F(Unconfirmed, AMapNamesABackupThatLacksAPush) {
  server_.adopt(map_.without(1), clock_.now_ns());
  for (uint32_t turn = 0; turn < 20 * kBuckets && !is_wished_for(); ++turn) {
    server_.turn();
    confirm_all();
  }
  ASSERT_TRUE(is_wished_for());
  const BucketMap names_it = *server_.wish();
  push_step();
  confirm_all(StatusCode::Unsupported);
  server_.turn();
  server_.adopt(names_it, clock_.now_ns());
  server_.turn();
  EXPECT_FALSE(worker_.heard().has_value()) << "acknowledged, and the backup lacks it";
  EXPECT_FALSE(has_backup(server_.wish())) << "the backup lacks a push, and nobody notices";
}

}  // namespace
}  // namespace rdmacoll::ps::unconfirmed_test
