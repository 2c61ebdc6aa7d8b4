// Server. Floor: ps/server. Thread: one.
#include "csrc/ps/server/server.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace rdmacoll::ps {
namespace {

Status makes_no_sense() {
  return Status(StatusCode::InvalidArgument,
                "the request makes no sense; install the same rdmacoll on workers and servers");
}

// The body as so many elements; nullptr: it has not that size.
template <typename Element>
const Element* elements_of(std::span<const std::byte> body, uint64_t count) {
  return body.size() == count * sizeof(Element) ? reinterpret_cast<const Element*>(body.data())
                                                : nullptr;
}

void say_done(Line& line, const Record& record) {
  // Room for every answer was reserved by who asked (client/calls.h).
  if (line.room(0) != nullptr) {
    line.send({.kind = RecordKind::Done, .number = record.head.number});
  }
}

void say_failed(Line& line, const Record& record, const Status& why) {
  const uint64_t bytes = std::min<uint64_t>(why.message().size(), kMostReasonBytes);
  std::byte* const body = line.room(bytes);
  if (body == nullptr) return;
  std::memcpy(body, why.message().data(), bytes);
  line.send({.bytes = static_cast<uint32_t>(bytes),
             .kind = RecordKind::Done,
             .code = static_cast<uint16_t>(why.code()),
             .number = record.head.number});
}

}  // namespace

bool Server::turn() {
  bool had_any = false;
  for (const auto& line : lines_) had_any |= answer_all(*line);
  std::erase_if(lines_, [](const auto& line) { return !line->failure().ok(); });
  return had_any;
}

ServerStats Server::stats() const {
  ServerStats stats = counts_;
  stats.tables = tables_.size();
  for (const auto& [id, table] : tables_) {
    stats.rows += table.count_rows();
    stats.elements += table.count_elements();
  }
  return stats;
}

bool Server::answer_all(Line& line) {
  Record record;
  bool had_any = false;
  while (line.take(record)) {
    had_any = true;
    if (record.head.kind == RecordKind::Leave) {
      line.leave();
      break;
    }
    answer(line, record);
    line.give_back(record);
  }
  return had_any;
}

void Server::answer(Line& line, const Record& record) {
  const Status status = act(line, record);
  if (!status.ok()) say_failed(line, record, status);
}

Status Server::act(Line& line, const Record& record) {
  switch (record.head.kind) {
    case RecordKind::Create:
      return create(line, record);
    case RecordKind::PushRange:
      return push_range(line, record);
    case RecordKind::PushRows:
      return push_rows(line, record);
    case RecordKind::PullRange:
      return pull_range(line, record);
    case RecordKind::PullRows:
      return pull_rows(line, record);
    case RecordKind::Locate:
      return locate(line, record);
    default:
      return makes_no_sense();
  }
}

Status Server::create(Line& line, const Record& record) {
  const std::string text(reinterpret_cast<const char*>(record.body.data()), record.body.size());
  auto spec = parse_table_spec(text);
  if (!spec.ok()) return spec.status();
  tables_.try_emplace(record.head.table, record.head.table, spec.take());
  say_done(line, record);
  return Status();
}

Result<ServerTable*> Server::table_of(const Record& record, TableKind kind) {
  const auto found = tables_.find(record.head.table);
  if (found == tables_.end() || found->second.spec().kind != kind) return makes_no_sense();
  return &found->second;
}

Result<DenseShard*> Server::range_of(const Record& record) {
  auto table = table_of(record, TableKind::Dense);
  if (!table.ok()) return table.status();
  const RecordHead& head = record.head;
  if (head.shard >= table.value()->spec().shards()) return makes_no_sense();
  auto dense = table.value()->dense(head.shard, memory_);
  if (!dense.ok()) return dense.status();
  DenseShard& shard = dense.value()->shard;
  if (head.first > shard.elements() || head.count > shard.elements() - head.first) {
    return makes_no_sense();
  }
  return &shard;
}

Status Server::push_range(Line& line, const Record& record) {
  auto shard = range_of(record);
  if (!shard.ok()) return shard.status();
  const auto* const values = elements_of<float>(record.body, record.head.count);
  if (values == nullptr || record.head.code > static_cast<uint16_t>(PushAs::Assigned)) {
    return makes_no_sense();
  }
  shard.value()->push(static_cast<PushAs>(record.head.code), record.head.first,
                      {values, record.head.count});
  ++counts_.pushes;
  say_done(line, record);
  return Status();
}

Status Server::pull_range(Line& line, const Record& record) {
  auto shard = range_of(record);
  if (!shard.ok()) return shard.status();
  const auto values = shard.value()->values().subspan(record.head.first, record.head.count);
  std::byte* const body = line.room(values.size_bytes());
  if (body == nullptr) return Status();
  std::memcpy(body, values.data(), values.size_bytes());
  line.send({.bytes = static_cast<uint32_t>(values.size_bytes()),
             .kind = RecordKind::Values,
             .number = record.head.number});
  ++counts_.pulls;
  return Status();
}

// The body: the parts, the ids of all, and their values.
Status Server::push_rows(Line& line, const Record& record) {
  auto found = table_of(record, TableKind::Rows);
  if (!found.ok()) return found.status();
  ServerTable& table = *found.value();
  const uint64_t dim = table.spec().dim;
  const RecordHead& head = record.head;
  const uint64_t parts_bytes = head.parts * sizeof(RowsPart);
  const uint64_t row_bytes = sizeof(uint64_t) + dim * sizeof(float);
  if (record.body.size() != parts_bytes + head.count * row_bytes ||
      head.code > static_cast<uint16_t>(PushAs::Assigned)) {
    return makes_no_sense();
  }
  std::vector<RowsPart> parts(head.parts);
  std::memcpy(parts.data(), record.body.data(), parts_bytes);
  uint64_t rows = 0;
  for (const RowsPart& part : parts) {
    if (part.bucket >= kBuckets) return makes_no_sense();
    rows += part.rows;
  }
  if (rows != head.count) return makes_no_sense();
  const std::byte* ids = record.body.data() + parts_bytes;
  const auto* values = reinterpret_cast<const float*>(ids + head.count * sizeof(uint64_t));
  for (const RowsPart& part : parts) {
    RowShard& shard = table.rows(part.bucket);
    for (uint32_t i = 0; i < part.rows; ++i) {
      uint64_t id = 0;
      std::memcpy(&id, ids, sizeof(id));
      shard.push(static_cast<PushAs>(head.code), id, values);
      ids += sizeof(id);
      values += dim;
    }
  }
  ++counts_.pushes;
  say_done(line, record);
  return Status();
}

Status Server::pull_rows(Line& line, const Record& record) {
  auto found = table_of(record, TableKind::Rows);
  if (!found.ok()) return found.status();
  ServerTable& table = *found.value();
  const uint64_t row_bytes = table.spec().dim * sizeof(float);
  const uint32_t count = record.head.count;
  if (record.body.size() != count * sizeof(uint64_t) || count * row_bytes > kMostBodyBytes) {
    return makes_no_sense();
  }
  std::byte* to = line.room(count * row_bytes);
  if (to == nullptr) return Status();
  for (uint32_t i = 0; i < count; ++i, to += row_bytes) {
    uint64_t id = 0;
    std::memcpy(&id, record.body.data() + i * sizeof(id), sizeof(id));
    const auto row = table.rows(bucket_of_row(record.head.table, id)).row(id);
    std::memcpy(to, row.data(), row_bytes);
  }
  line.send({.bytes = static_cast<uint32_t>(count * row_bytes),
             .kind = RecordKind::Values,
             .number = record.head.number});
  ++counts_.pulls;
  return Status();
}

Status Server::locate(Line& line, const Record& record) {
  auto table = table_of(record, TableKind::Dense);
  if (!table.ok()) return table.status();
  if (record.head.shard >= table.value()->spec().shards()) return makes_no_sense();
  auto dense = table.value()->dense(record.head.shard, memory_);
  if (!dense.ok()) return dense.status();
  const ShardPlace& place = dense.value()->place;
  std::byte* const body = line.room(sizeof(place));
  if (body == nullptr) return Status();
  std::memcpy(body, &place, sizeof(place));
  line.send({.bytes = sizeof(place), .kind = RecordKind::Placed, .number = record.head.number});
  return Status();
}

}  // namespace rdmacoll::ps
