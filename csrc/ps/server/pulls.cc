// Pulls. Floor: ps/server. Thread: the server's.
#include "csrc/ps/server/pulls.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "csrc/base/printable.h"
#include "csrc/ps/server/answers.h"

namespace rdmacoll::ps {

Result<DenseShard*> Pulls::shard_of(Connection& connection, const RecordHead& head) {
  auto table = state_.table_of(head.table, TableKind::Dense);
  if (!table.ok()) return table.status();
  if (head.shard >= table.value()->spec().shards()) return makes_no_sense(kRequest);
  if (!state_.serves(bucket_of_shard(head.table, head.shard), state_.clock.now_ns())) {
    say_elsewhere(connection, head.number);
    return nullptr;
  }
  return table.value()->dense(head.shard);
}

Result<bool> Pulls::answer_range(Connection& connection, const RecordHead& head) {
  auto found = shard_of(connection, head);
  if (!found.ok()) return found.status();
  DenseShard* const shard = found.value();
  if (shard == nullptr) return true;
  if (head.step > 0 && shard->pace() == nullptr) return makes_no_sense(kRequest);
  const auto values = shard->values();
  if (head.first > values.size() || head.count > values.size() - head.first) {
    return makes_no_sense(kRequest);
  }
  if (head.step > 0 && shard->pace()->slowest() < head.step) return false;
  const auto asked = values.subspan(head.first, head.count);
  std::byte* const body = connection.room(asked.size_bytes());
  if (body == nullptr) return true;
  std::memcpy(body, asked.data(), asked.size_bytes());
  state_.add_load(bucket_of_shard(head.table, head.shard), asked.size_bytes());
  if (!shard->is_shown()) shard->show();
  say_place(connection, head.number, asked.size_bytes(), shard->place());
  ++count_;
  return true;
}

Status Pulls::range(const std::shared_ptr<Connection>& connection, const RecordHead& head) {
  auto is_answered = answer_range(*connection, head);
  if (is_answered.ok() && !is_answered.value()) waiting_.push_back({connection, head});
  return is_answered.status();
}

bool Pulls::settle() {
  return std::erase_if(waiting_, [&](const Waiting& one) {
           if (!one.connection->failure().ok()) return true;
           auto is_answered = answer_range(*one.connection, one.head);
           if (is_answered.ok()) return is_answered.value();
           say_failed(*one.connection, one.head.number, is_answered.status());
           return true;
         }) > 0;
}

Status Pulls::steps(Connection& connection, const RecordHead& head) {
  auto found = shard_of(connection, head);
  if (!found.ok()) return found.status();
  const DenseShard* const shard = found.value();
  if (shard == nullptr) return Status();
  if (shard->pace() == nullptr || head.count > kMostPaced) return makes_no_sense(kRequest);
  std::vector<uint32_t> reached = shard->pace()->reached();
  reached.resize(head.count, kNoWorker);
  const uint64_t bytes = reached.size() * sizeof(reached[0]);
  std::byte* const body = connection.room(bytes);
  if (body == nullptr) return Status();
  if (bytes > 0) std::memcpy(body, reached.data(), bytes);
  say_values(connection, head.number, bytes);
  return Status();
}

// The rows lie anywhere, each behind several looks of which one needs the other. So a few of them
// are looked for side by side.
Result<bool> Pulls::write_rows(ServerTable& table, std::span<const std::byte> ids, std::byte* to) {
  struct Look {
    uint64_t id = 0;
    uint32_t bucket = 0;
    RowShard* shard = nullptr;
    uint64_t place = 0;
  };
  std::array<Look, 16> looks;
  const uint64_t row_bytes = table.spec().dim * sizeof(float);
  const int64_t now_ns = state_.clock.now_ns();
  while (!ids.empty()) {
    const size_t count = std::min(looks.size(), ids.size() / sizeof(uint64_t));
    const std::span some(looks.data(), count);
    for (Look& look : some) {
      std::memcpy(&look.id, ids.data(), sizeof(look.id));
      ids = ids.subspan(sizeof(look.id));
      look.bucket = bucket_of_row(table.id(), look.id);
      if (!state_.serves(look.bucket, now_ns)) return false;
      look.shard = &table.rows(look.bucket);
      __builtin_prefetch(look.shard);
    }
    for (const Look& look : some) look.shard->prefetch_place(look.id);
    const bool is_full = state_.memory.is_full();
    for (Look& look : some) {
      if (is_full && !look.shard->has(look.id)) {
        return state_.memory.no_room("new rows of table '" + printable(table.spec().name) + "'");
      }
      look.place = look.shard->place_of(look.id);
      look.shard->prefetch_values(look.place);
    }
    for (const Look& look : some) {
      if (!look.shard->is_shown()) look.shard->show();
      std::memcpy(to, look.shard->values(look.place).data(), row_bytes);
      state_.add_load(look.bucket, row_bytes);
      to += row_bytes;
    }
  }
  return true;
}

Status Pulls::rows(Connection& connection, const Record& record) {
  auto found = state_.table_of(record.head.table, TableKind::Rows);
  if (!found.ok()) return found.status();
  const uint64_t row_bytes = found.value()->spec().dim * sizeof(float);
  const uint32_t count = record.head.count;
  if (record.body.size() != count * sizeof(uint64_t) || count * row_bytes > kMostBodyBytes) {
    return makes_no_sense(kRequest);
  }
  std::byte* const to = connection.room(count * row_bytes);
  if (to == nullptr) return Status();
  auto is_here = write_rows(*found.value(), record.body, to);
  if (!is_here.ok()) return is_here.status();
  if (!is_here.value()) {
    say_elsewhere(connection, record.head.number);
    return Status();
  }
  say_place(connection, record.head.number, count * row_bytes, found.value()->rows_place());
  ++count_;
  return Status();
}

}  // namespace rdmacoll::ps
