// Client: what snapshots are made of, and how tables become what they were.
// Floor: ps/client. Thread: any.
#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "csrc/base/printable.h"
#include "csrc/ps/client/client.h"
#include "csrc/ps/table/saved.h"

namespace rdmacoll::ps {
namespace {

Status check_shard(const TableSpec& spec, uint64_t shard, uint64_t floats) {
  const std::string table = "table '" + printable(spec.name) + "'";
  if (shard >= spec.shards()) {
    return Status(StatusCode::InvalidArgument, table + " has no shard " + std::to_string(shard) +
                                                   "; it has " + std::to_string(spec.shards()));
  }
  const uint64_t whole = arrays_of(spec) * (kCountFloats + spec.shard_elements(shard));
  if (floats == whole) return Status();
  return Status(StatusCode::InvalidArgument, std::to_string(floats) + " floats are no shard of " +
                                                 table + "; give " + std::to_string(whole));
}

}  // namespace

BatchPtr Client::save_shard(uint32_t table, uint64_t shard, std::span<float> saved,
                            const Limit& limit) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    auto spec = spec_of(table, TableKind::Dense);
    if (!spec.ok()) return spec.status();
    RDMACOLL_RETURN_IF_ERROR(check_shard(*spec.value(), shard, saved.size()));
    const uint64_t arrays = arrays_of(*spec.value());
    const ServerId server = map_.of(bucket_of_shard(table, shard)).primary;
    RecordHead head{.kind = RecordKind::SaveShard,
                    .table = table,
                    .shard = static_cast<uint32_t>(shard),
                    .count = static_cast<uint32_t>(spec.value()->shard_elements(shard))};
    for (; head.first < arrays; ++head.first) {
      auto* const into =
          reinterpret_cast<std::byte*>(saved.data() + head.first * (saved.size() / arrays));
      RDMACOLL_RETURN_IF_ERROR(ask(lock, server, {batch, head, into}, 0, [](std::byte*) {}, limit));
    }
    return Status();
  });
}

// In pieces: all of a shard is longer than a record.
BatchPtr Client::restore_shard(uint32_t table, uint64_t shard, std::span<const float> saved,
                               const Limit& limit) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    auto spec = spec_of(table, TableKind::Dense);
    if (!spec.ok()) return spec.status();
    RDMACOLL_RETURN_IF_ERROR(check_shard(*spec.value(), shard, saved.size()));
    const uint64_t arrays = arrays_of(*spec.value());
    const uint64_t array_floats = saved.size() / arrays;
    const uint64_t elements = array_floats - kCountFloats;
    const uint64_t most = kShardElements / arrays;
    for (uint64_t first = 0; first < elements; first += most) {
      const uint64_t count = std::min(most, elements - first);
      const RecordHead head{.kind = RecordKind::Push,
                            .code = static_cast<uint16_t>(PushAs::Restored),
                            .table = table,
                            .parts = 1,
                            .shard = static_cast<uint32_t>(shard),
                            .first = static_cast<uint32_t>(first),
                            .count = static_cast<uint32_t>(count)};
      PushPart part{.bucket = bucket_of_shard(table, shard)};
      const auto write = [&](std::byte* body) {
        part.push = next_push(part.bucket);
        std::memcpy(body, &part, sizeof(part));
        std::memcpy(body + sizeof(part), saved.data(), sizeof(uint64_t));
        std::byte* to = body + sizeof(part) + sizeof(uint64_t);
        for (uint64_t array = 0; array < arrays; ++array, to += count * sizeof(float)) {
          const float* const from = saved.data() + array * array_floats + kCountFloats + first;
          std::memcpy(to, from, count * sizeof(float));
        }
      };
      const uint64_t bytes = sizeof(part) + sizeof(uint64_t) + arrays * count * sizeof(float);
      RDMACOLL_RETURN_IF_ERROR(
          ask(lock, map_.of(part.bucket).primary, {batch, head}, bytes, write, limit));
    }
    return Status();
  });
}

BatchPtr Client::list_rows(uint32_t table, uint32_t bucket, uint64_t from,
                           std::span<uint64_t> listed, const Limit& limit) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    auto spec = spec_of(table, TableKind::Rows);
    if (!spec.ok()) return spec.status();
    if (bucket >= kBuckets || listed.size() < 2 || listed.size_bytes() > kMostBodyBytes) {
      return Status(StatusCode::InvalidArgument,
                    "bucket " + std::to_string(bucket) + ", and room for " +
                        std::to_string(listed.size()) + " numbers; give a bucket below " +
                        std::to_string(kBuckets) + ", and room for 2 to " +
                        std::to_string(kMostBodyBytes / sizeof(uint64_t)));
    }
    const RecordHead head{.kind = RecordKind::ListRows,
                          .table = table,
                          .shard = bucket,
                          .count = static_cast<uint32_t>(listed.size() - 1)};
    return ask(
        lock, map_.of(bucket).primary, {batch, head, reinterpret_cast<std::byte*>(listed.data())},
        sizeof(from), [&](std::byte* body) { std::memcpy(body, &from, sizeof(from)); }, limit);
  });
}

BatchPtr Client::empty_rows(uint32_t table, const Limit& limit) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    auto spec = spec_of(table, TableKind::Rows);
    if (!spec.ok()) return spec.status();
    std::map<ServerId, std::vector<PushPart>> by_server;
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      by_server[map_.of(bucket).primary].push_back({.bucket = bucket});
    }
    for (auto& [server, parts] : by_server) {
      const RecordHead head{.kind = RecordKind::Push,
                            .code = static_cast<uint16_t>(PushAs::Restored),
                            .table = table,
                            .parts = static_cast<uint32_t>(parts.size())};
      const uint64_t bytes = parts.size() * sizeof(PushPart);
      const auto write = [&](std::byte* body) {
        for (PushPart& part : parts) part.push = next_push(part.bucket);
        std::memcpy(body, parts.data(), bytes);
      };
      RDMACOLL_RETURN_IF_ERROR(ask(lock, server, {batch, head}, bytes, write, limit));
    }
    return Status();
  });
}

}  // namespace rdmacoll::ps
