// Errand. Floor: ps/client. Thread: under the client's lock.
#include "csrc/ps/client/errand.h"

#include <cstring>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/ps/table/saved.h"
#include "csrc/ps/wire/push.h"

namespace rdmacoll::ps {
namespace {

// What is answered of each of them.
bool has_rows(RecordKind kind) {
  return kind == RecordKind::PullRows || kind == RecordKind::SaveRows;
}

uint64_t id_at(const std::vector<std::byte>& ids, size_t row) {
  uint64_t id = 0;
  std::memcpy(&id, ids.data() + row * sizeof(id), sizeof(id));
  return id;
}

std::map<ServerId, Redo> split_push(const Redo& redo, const TableSpec& spec, const BucketMap& map) {
  const auto push = read_push({redo.errand.head, redo.body}, spec);
  RDMACOLL_CHECK(push.has_value());
  std::map<ServerId, std::vector<uint32_t>> parts;
  for (uint32_t i = 0; i < push->parts.size(); ++i) {
    parts[map.of(push->parts[i].bucket).primary].push_back(i);
  }
  std::map<ServerId, Redo> all;
  for (const auto& [server, of_server] : parts) {
    Redo part{.errand = redo.errand, .body = {}};
    const Forward forward{*push, of_server, spec};
    part.errand.head = forward.head();
    part.body.resize(forward.bytes());
    forward.write(part.body.data());
    all.emplace(server, std::move(part));
  }
  return all;
}

std::map<ServerId, Redo> split_rows(const Redo& redo, const BucketMap& map) {
  std::map<ServerId, Redo> all;
  const Errand& errand = redo.errand;
  for (size_t i = 0; i < errand.rows.size(); ++i) {
    const uint64_t id = id_at(redo.body, i);
    const ServerId server = map.of(bucket_of_row(errand.head.table, id)).primary;
    auto [at, is_new] = all.try_emplace(server);
    Redo& part = at->second;
    if (is_new) part.errand = {errand.batch, errand.head, errand.into, {}};
    part.errand.rows.push_back(errand.rows[i]);
    const auto* const bytes = redo.body.data() + i * sizeof(id);
    part.body.insert(part.body.end(), bytes, bytes + sizeof(id));
  }
  for (auto& [server, part] : all) {
    part.errand.head.count = static_cast<uint32_t>(part.errand.rows.size());
  }
  return all;
}

}  // namespace

uint64_t answered_row_floats(RecordKind kind, const TableSpec& spec) {
  return kind == RecordKind::SaveRows ? saved_row_floats(spec) : spec.dim;
}

RecordKind Errand::answer() const {
  return head.kind == RecordKind::Push ? RecordKind::Done : RecordKind::Values;
}

uint64_t Errand::answer_bytes(const TableSpec& spec) const {
  switch (head.kind) {
    case RecordKind::PullRange:
      return awaits ? 0 : head.count * sizeof(float);
    case RecordKind::SaveShard:
      return (kCountFloats + head.count) * sizeof(float);
    case RecordKind::PullSteps:
      return head.count * sizeof(uint32_t);
    case RecordKind::ListRows:
      return (1 + uint64_t{head.count}) * sizeof(uint64_t);
    case RecordKind::PullRows:
    case RecordKind::SaveRows:
      return head.count * answered_row_floats(head.kind, spec) * sizeof(float);
    default:
      return 0;
  }
}

Status Errand::take(std::span<const std::byte> answered, const TableSpec& spec) const {
  if (answer() == RecordKind::Done) return Status();
  const bool is_list = head.kind == RecordKind::ListRows;
  const bool is_whole =
      is_list ? answered.size() >= sizeof(uint64_t) && answered.size() <= answer_bytes(spec) &&
                    answered.size() / sizeof(uint64_t) - 1 == count_at(answered.data())
              : answered.size() == answer_bytes(spec);
  if (!is_whole) {
    return Status(StatusCode::InvalidArgument,
                  "an answer has another size than what was asked for; install the same rdmacoll "
                  "on workers and servers");
  }
  if (answered.empty()) return Status();
  if (!has_rows(head.kind)) {
    std::memcpy(into, answered.data(), answered.size());
    return Status();
  }
  const uint64_t row_bytes = answered_row_floats(head.kind, spec) * sizeof(float);
  const std::byte* from = answered.data();
  for (const uint32_t row : rows) {
    std::memcpy(into + row * row_bytes, from, row_bytes);
    from += row_bytes;
  }
  return Status();
}

Redo filler(const RecordHead& refused, std::span<const std::byte> body) {
  const RecordHead head{.kind = RecordKind::Push,
                        .code = static_cast<uint16_t>(PushAs::Assigned),
                        .table = refused.table,
                        .parts = 1,
                        .shard = refused.shard};
  const auto part = body.first(sizeof(PushPart));
  return {{std::make_shared<Batch>(), head}, {part.begin(), part.end()}};
}

Redo for_another(Redo redo) {
  Errand& errand = redo.errand;
  errand.awaits = false;
  if (errand.head.loan == 0) return redo;
  const auto values = std::as_bytes(errand.lent);
  const auto begin = redo.body.begin() + sizeof(PushPart);
  redo.body.insert(redo.body.erase(begin, begin + sizeof(LentValues)), values.begin(),
                   values.end());
  errand.head.loan = 0;
  errand.lent = {};
  errand.keeps = nullptr;  // others may have the room
  return redo;
}

std::vector<uint32_t> buckets_of(const Redo& redo) {
  const RecordHead& head = redo.errand.head;
  if (head.kind == RecordKind::PullRange || head.kind == RecordKind::PullSteps ||
      head.kind == RecordKind::SaveShard) {
    return {bucket_of_shard(head.table, head.shard)};
  }
  if (head.kind == RecordKind::ListRows) return {head.shard};
  std::vector<uint32_t> buckets;
  for (size_t i = 0; i < redo.errand.rows.size(); ++i) {
    buckets.push_back(bucket_of_row(head.table, id_at(redo.body, i)));
  }
  if (head.kind != RecordKind::Push) return buckets;
  for (size_t i = 0; i < head.parts; ++i) {
    PushPart part;
    std::memcpy(&part, redo.body.data() + i * sizeof(part), sizeof(part));
    buckets.push_back(part.bucket);
  }
  return buckets;
}

std::map<ServerId, Redo> split(const Redo& redo, const TableSpec& spec, const BucketMap& map) {
  const RecordHead& head = redo.errand.head;
  if (has_rows(head.kind)) return split_rows(redo, map);
  if (head.kind == RecordKind::ListRows) return {{map.of(head.shard).primary, redo}};
  if (head.kind == RecordKind::Push && spec.kind == TableKind::Rows) {
    return split_push(redo, spec, map);
  }
  return {{map.of(bucket_of_shard(head.table, head.shard)).primary, redo}};
}

}  // namespace rdmacoll::ps
