// What a worker or another server says to a server of the parameter server: any head and any body,
// one after the other. It is answered, or refused, or held; nothing else is touched.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/server/server.h"
#include "csrc/ps/wire/install.h"
#include "tests/fuzz/target.h"
#include "tests/unit/ps/heap_memory.h"

namespace rdmacoll::fuzz {
namespace {

using namespace ps;

constexpr uint64_t kMemoryBytes = 64 * 1024;  // of all tables
constexpr LoanId kLoan{1, 1};

// What is said comes at once; what is answered is only looked at.
class Said final : public Connection {
 public:
  void say(const RecordHead& head, std::string body) {
    head_ = head;
    body_ = std::move(body);
  }
  Status failure() const override { return left_; }
  bool take(Record& record) override {
    if (!head_) return false;
    record = {*std::exchange(head_, std::nullopt),
              std::as_bytes(std::span(body_.data(), body_.size()))};
    return true;
  }
  void give_back(const Record&) override {}
  std::byte* room(uint64_t body_bytes) override {
    RDMACOLL_CHECK(body_bytes <= kMostBodyBytes);
    answer_.assign(body_bytes + 1, std::byte());
    return answer_.data();
  }
  uint64_t send(const RecordHead& head) override {
    RDMACOLL_CHECK(head.bytes < answer_.size());
    if (head.code != 0) {
      const auto* const text = reinterpret_cast<const char*>(answer_.data());
      check_error(Status(static_cast<StatusCode>(head.code), std::string(text, head.bytes)));
    }
    return 0;
  }
  void keep(uint64_t) override {}
  void leave() override { left_ = Status(StatusCode::PeerFailed, "has left"); }

 private:
  std::optional<RecordHead> head_;
  std::string body_;
  std::vector<std::byte> answer_;
  Status left_;
};

std::string record(RecordHead head, const std::string& body) {
  head.bytes = static_cast<uint32_t>(body.size());
  return bytes_of(head) + body;
}

const TableSpec kDense{.name = "dense",
                       .elements = 64,
                       .optimizer = Optimizer{.kind = OptimizerKind::Adam, .lr = 1, .eps = 1}};
const TableSpec kPaced{.name = "paced",
                       .elements = 64,
                       .optimizer = Optimizer{.kind = OptimizerKind::Sgd, .lr = 1},
                       .pace = Pace{.elements = 64, .is_sync = true}};
const TableSpec kRows{.name = "rows", .kind = TableKind::Rows, .dim = 2};

std::string push_of(uint32_t bucket, uint32_t rows, const std::string& rest) {
  return bytes_of(PushPart{.bucket = bucket, .rows = rows, .push = 1}) + rest;
}

const std::string kRates = bytes_of(Rates{.lr = 1});

RecordHead restored(RecordKind kind, uint32_t table, uint32_t count) {
  return {.kind = kind,
          .code = static_cast<uint16_t>(PushAs::Restored),
          .table = table,
          .parts = 1,
          .count = count,
          .worker = 1};
}

// So many workers of the table with a pace.
RecordHead generation(RecordKind kind, uint32_t number, uint32_t workers) {
  return {.kind = kind,
          .code = static_cast<uint16_t>(PushAs::Generation),
          .table = 4,
          .parts = 1,
          .first = number,
          .worker = number,
          .rank = workers};
}

// A push whose values are where the loan is.
std::string lent(RecordKind kind, const LentValues& values) {
  return record({.kind = kind,
                 .table = 1,
                 .parts = 1,
                 .count = 32,
                 .loan = kLoan.second,
                 .worker = kLoan.first},
                push_of(bucket_of_shard(1, 0), 0, bytes_of(values) + kRates));
}

}  // namespace

std::vector<std::string> seeds() {
  const uint32_t shard_bucket = bucket_of_shard(1, 0);
  const std::string floats(64 * sizeof(float), '\0');
  const std::string rows =
      push_of(bucket_of_row(2, 7), 1, bytes_of(uint64_t{7}) + floats.substr(0, 8) + kRates);
  const InstallHead begin{.bucket = shard_bucket};
  const InstallHead values{.what = InstallHead::What::Values, .bucket = shard_bucket};
  const uint32_t paced_bucket = bucket_of_shard(4, 0);
  const InstallHead steps{.what = InstallHead::What::Steps, .bucket = paced_bucket};
  const InstallHead gathered{
      .what = InstallHead::What::Gathered, .bucket = paced_bucket, .which = 1, .number = 1};
  const InstallHead of_rows{.what = InstallHead::What::Rows, .bucket = 3};
  return {
      record({.kind = RecordKind::Create, .table = 3}, encode(kDense)),
      record({.kind = RecordKind::Push, .table = 1, .parts = 1, .count = 64, .worker = 1},
             push_of(shard_bucket, 0, floats + kRates)),
      lent(RecordKind::Push, {.offset = 8, .also = 1}),
      lent(RecordKind::Forward, {.offset = 8}),
      record({.kind = RecordKind::Push, .table = 2, .parts = 1, .count = 1, .worker = 1}, rows),
      record({.kind = RecordKind::Forward, .table = 2, .parts = 1, .count = 1, .worker = 1}, rows),
      record({.kind = RecordKind::PullRange, .table = 1, .count = 64}, ""),
      record({.kind = RecordKind::PullRows, .table = 2, .count = 1}, bytes_of(uint64_t{7})),
      record({.kind = RecordKind::SaveShard, .table = 1, .count = 64}, ""),
      record({.kind = RecordKind::ListRows, .table = 2, .shard = 3, .count = 9},
             bytes_of(uint64_t{7})),
      record({.kind = RecordKind::SaveRows, .table = 2, .count = 1}, bytes_of(uint64_t{7})),
      record(restored(RecordKind::Push, 1, 4),
             push_of(shard_bucket, 0, floats.substr(0, (2 + 3 * 4) * sizeof(float)))),
      record(restored(RecordKind::Forward, 2, 1),
             push_of(bucket_of_row(2, 7), 1, bytes_of(uint64_t{7}) + floats.substr(0, 16))),
      record(restored(RecordKind::Push, 2, 0), push_of(3, 0, "")),
      record({.kind = RecordKind::Install}, bytes_of(begin) + bytes_of(InstallPushes{1, 5})),
      record({.kind = RecordKind::Install, .table = 1}, bytes_of(values) + floats),
      record({.kind = RecordKind::Install, .table = 2},
             bytes_of(of_rows) + bytes_of(InstallRow{7, 1}) + floats.substr(0, 8)),
      record({.kind = RecordKind::Push,
              .table = 4,
              .parts = 1,
              .first = 1,
              .count = 64,
              .worker = 1,
              .rank = 1,
              .step = 1},
             push_of(paced_bucket, 0, floats + kRates)),
      record(generation(RecordKind::Push, 2, 3), push_of(paced_bucket, 0, "")),
      record(generation(RecordKind::Forward, 2, 3), push_of(paced_bucket, 0, "")),
      record({.kind = RecordKind::PullRange, .table = 4, .count = 64, .step = 1}, ""),
      record({.kind = RecordKind::PullSteps, .table = 4, .count = 3}, ""),
      record({.kind = RecordKind::Install, .table = 4}, bytes_of(steps) + floats.substr(0, 8)),
      record({.kind = RecordKind::Install, .table = 4}, bytes_of(gathered) + floats),
      record({.kind = RecordKind::PullLoads}, ""),
      record({.kind = RecordKind::HandOver}, bytes_of(paced_bucket) + bytes_of(shard_bucket)),
      record({.kind = RecordKind::Offer}, bytes_of(paced_bucket) + bytes_of(shard_bucket)),
      record(
          {.kind = RecordKind::Push, .number = 1, .table = 1, .parts = 1, .count = 64, .worker = 1},
          push_of(shard_bucket, 0, floats + kRates)),
      record({.kind = RecordKind::Leave}, ""),
      encode(kDense),
      encode(kPaced),
      encode(kRows),
      BucketMap::spread(3, 2).encode(),
  };
}

// To a server with tables, or such as were dropped; by a worker, or by another server.
void answer(const RecordHead& head, const std::string& body, ServerId from, bool are_dropped) {
  const SteadyClock clock;
  HeapMemory memory(kMemoryBytes);
  Server server(0, 2, BucketMap::spread(2, 2), memory, clock);
  server.adopt(server.map(), clock.now_ns());
  const auto said = std::make_shared<Said>();
  server.add(said, from);
  std::vector<float> loan(48);  // what is read beyond it is seen by the sanitizer
  server.lent().add(kLoan, [&] { return Mapped{std::as_bytes(std::span(loan))}; });
  for (const auto& [table, spec] : {std::pair{1u, kDense}, {2u, kRows}, {4u, kPaced}}) {
    said->say({.kind = RecordKind::Create, .table = table}, encode(spec));
    server.turn();
    if (are_dropped) server.drop(table);
  }
  said->say(head, body);
  server.turn();
  server.turn();  // what waits is looked at again
}

void run(const std::string& bytes) {
  auto spec = parse_table_spec(bytes);
  if (spec.ok()) {
    RDMACOLL_CHECK(check(spec.value()).ok());
  } else {
    check_error(spec.status());
  }
  auto map = BucketMap::parse(bytes);
  RDMACOLL_CHECK(!map.ok() || map.value().encode() == bytes);
  if (bytes.size() < sizeof(RecordHead)) return;
  RecordHead head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.kind > kLastRecordKind) return;  // the ring refuses it
  const std::string body = bytes.substr(sizeof(head));
  const bool are_dropped = head.number % 2 != 0;  // the number may be any
  for (const ServerId from : {kNoServer, ServerId{1}}) answer(head, body, from, are_dropped);
}

}  // namespace rdmacoll::fuzz
