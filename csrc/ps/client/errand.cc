// Errand. Floor: ps/client. Thread: under the client's lock.
#include "csrc/ps/client/errand.h"

#include <cstring>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/ps/wire/push.h"

namespace rdmacoll::ps {
namespace {

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
    part.body.resize(forward_bytes(*push, of_server, spec));
    write_forward(*push, of_server, spec, part.body.data());
    part.errand.head.parts = static_cast<uint32_t>(of_server.size());
    if (spec.kind == TableKind::Rows) part.errand.head.count = rows_of(*push, of_server);
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

RecordKind Errand::answer() const {
  const bool pulls = head.kind == RecordKind::PullRange || head.kind == RecordKind::PullRows ||
                     head.kind == RecordKind::PullSteps;
  return pulls ? RecordKind::Values : RecordKind::Done;
}

uint64_t Errand::answer_bytes(const TableSpec& spec) const {
  if (head.kind == RecordKind::PullRange) return head.count * sizeof(float);
  if (head.kind == RecordKind::PullSteps) return spec.pace->workers * sizeof(uint32_t);
  return head.kind == RecordKind::PullRows ? head.count * spec.dim * sizeof(float) : 0;
}

Status Errand::take(std::span<const std::byte> answered, const TableSpec& spec) const {
  if (answer() == RecordKind::Done) return Status();
  if (answered.size() != answer_bytes(spec)) {
    return Status(StatusCode::InvalidArgument,
                  "an answer has another size than what was asked for; install the same rdmacoll "
                  "on workers and servers");
  }
  if (head.kind != RecordKind::PullRows) {
    std::memcpy(into, answered.data(), answered.size());
    return Status();
  }
  const uint64_t row_bytes = spec.dim * sizeof(float);
  const std::byte* from = answered.data();
  for (const uint32_t row : rows) {
    std::memcpy(into + row * row_bytes, from, row_bytes);
    from += row_bytes;
  }
  return Status();
}

std::vector<uint32_t> buckets_of(const Redo& redo) {
  const RecordHead& head = redo.errand.head;
  if (head.kind == RecordKind::PullRange || head.kind == RecordKind::PullSteps) {
    return {bucket_of_shard(head.table, head.shard)};
  }
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
  if (head.kind == RecordKind::PullRows) return split_rows(redo, map);
  if (head.kind == RecordKind::Push && spec.kind == TableKind::Rows) {
    return split_push(redo, spec, map);
  }
  return {{map.of(bucket_of_shard(head.table, head.shard)).primary, redo}};
}

}  // namespace rdmacoll::ps
