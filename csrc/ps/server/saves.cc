// Saves. Floor: ps/server. Thread: the server's.
#include "csrc/ps/server/saves.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>

#include "csrc/ps/server/answers.h"
#include "csrc/ps/table/saved.h"

namespace rdmacoll::ps {
namespace {

std::byte* put(std::byte* to, uint64_t count) {
  std::memcpy(to, &count, sizeof(count));
  return to + sizeof(count);
}

std::byte* put(std::byte* to, std::span<const float> floats) {
  std::memcpy(to, floats.data(), floats.size_bytes());
  return to + floats.size_bytes();
}

void copy_shard(const Record& record, const DenseShard& shard, ShardCopy& copy) {
  const auto values = shard.values();
  copy = {record.head.table, record.head.shard, shard.pushes(), {}};
  copy.arrays.emplace_back(values.begin(), values.end());
  std::ranges::copy(shard.state(), std::back_inserter(copy.arrays));
}

}  // namespace

Status save_shard(State& state, ServerTable& table, Connection& connection, const Record& record,
                  ShardCopy& copy) {
  const RecordHead& head = record.head;
  const uint64_t arrays = arrays_of(table.spec());
  const bool is_there = head.shard < table.spec().shards() && head.first < arrays &&
                        head.count == table.spec().shard_elements(head.shard);
  if (!is_there) return makes_no_sense(kRequest);
  if (!state.serves(bucket_of_shard(head.table, head.shard), state.clock.now_ns())) {
    say_elsewhere(connection, head.number);
    return Status();
  }
  auto dense = table.dense(head.shard);
  if (!dense.ok()) return dense.status();
  const bool is_known =
      !copy.arrays.empty() && copy.table == head.table && copy.shard == head.shard;
  if (head.first == 0 || !is_known) copy_shard(record, *dense.value(), copy);
  const std::span<const float> asked = copy.arrays[head.first];
  const uint64_t bytes = sizeof(uint64_t) + asked.size_bytes();
  std::byte* const body = connection.room(bytes);
  if (body == nullptr) return Status();
  put(put(body, copy.pushes), asked);
  say_values(connection, record.head.number, bytes);
  if (head.first + 1 == arrays) copy = {};
  return Status();
}

// By their ids, not by their places: a backup has them at other places.
Status list_rows(const State& state, const ServerTable& table, Connection& connection,
                 const Record& record) {
  const uint32_t bucket = record.head.shard;
  const uint64_t most = record.head.count;
  if (bucket >= kBuckets || most == 0 || (1 + most) * sizeof(uint64_t) > kMostBodyBytes ||
      record.body.size() != sizeof(uint64_t)) {
    return makes_no_sense(kRequest);
  }
  if (!state.serves(bucket, state.clock.now_ns())) {
    say_elsewhere(connection, record.head.number);
    return Status();
  }
  const uint64_t from = count_at(record.body.data());
  std::vector<uint64_t> ids;
  if (const RowShard* const rows = table.find_rows(bucket); rows != nullptr) {
    for (const uint64_t place : rows->places()) {
      const uint64_t id = rows->save(place).id;
      if (id >= from) ids.push_back(id);
    }
  }
  if (ids.size() > most) {
    std::ranges::nth_element(ids, ids.begin() + static_cast<ptrdiff_t>(most));
    ids.resize(most);
  }
  std::ranges::sort(ids);
  const uint64_t bytes = (1 + ids.size()) * sizeof(uint64_t);
  std::byte* to = connection.room(bytes);
  if (to == nullptr) return Status();
  to = put(to, ids.size());
  for (const uint64_t id : ids) to = put(to, id);
  say_values(connection, record.head.number, bytes);
  return Status();
}

Status save_rows(const State& state, ServerTable& table, Connection& connection,
                 const Record& record) {
  const uint32_t count = record.head.count;
  const uint64_t bytes = count * saved_row_floats(table.spec()) * sizeof(float);
  if (record.body.size() != count * sizeof(uint64_t) || bytes > kMostBodyBytes) {
    return makes_no_sense(kRequest);
  }
  std::byte* to = connection.room(bytes);
  if (to == nullptr) return Status();
  const int64_t now_ns = state.clock.now_ns();
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t id = count_at(record.body.data() + i * sizeof(id));
    const uint32_t bucket = bucket_of_row(record.head.table, id);
    if (!state.serves(bucket, now_ns)) {
      say_elsewhere(connection, record.head.number);
      return Status();
    }
    const RowShard::Saved row = table.rows(bucket).find(id);
    to = put(put(to, row.pushes), row.floats);
  }
  say_values(connection, record.head.number, bytes);
  return Status();
}

void restore(ServerTable& table, const Push& push, const PushPart& part, uint64_t first_row) {
  if (table.spec().kind == TableKind::Dense) {
    table.known_dense(push.head.shard)
        .restore(push.head.first, count_at(push.values.data()), push.values.subspan(kCountFloats));
    return;
  }
  if (part.rows == 0) return table.forget_rows(part.bucket);
  RowShard& rows = table.rows(part.bucket);
  const uint64_t floats = saved_row_floats(table.spec());
  for (uint64_t row = first_row; row < first_row + part.rows; ++row) {
    const auto saved = push.values.subspan(row * floats, floats);
    rows.load({push.id(row), count_at(saved.data()), saved.subspan(kCountFloats)});
  }
}

}  // namespace rdmacoll::ps
