// Push. Floor: ps/wire. Thread: values.
#include "csrc/ps/wire/push.h"

#include <algorithm>

#include "csrc/ps/table/saved.h"

namespace rdmacoll::ps {
namespace {

uint64_t bytes_of(const TableSpec& spec, PushAs as, uint64_t count) {
  const PushFloats floats = push_floats(spec, as);
  const uint64_t id_bytes = spec.kind == TableKind::Rows ? sizeof(uint64_t) : 0;
  return floats.before * sizeof(float) + count * (id_bytes + floats.each * sizeof(float));
}

// A range is in one part: that of its shard's bucket.
bool is_range(const Push& push, const TableSpec& spec) {
  const RecordHead& head = push.head;
  if (head.shard >= spec.shards()) return false;
  return push.parts.size() == 1 && push.parts[0].rows == 0 &&
         push.parts[0].bucket == bucket_of_shard(head.table, head.shard);
}

// With a pace all workers push the same of a shard in each step. Where a range begins is not asked
// then: the number of the generation is in its place.
bool keeps_pace(const Push& push, const TableSpec& spec) {
  const RecordHead& head = push.head;
  if (push.as() == PushAs::Generation) {
    const bool is_one = head.first > 0 && head.rank > 0 && head.rank <= kMostPaced;
    return spec.pace && is_one && head.count == 0 && spec.paced_elements(head.shard) > 0;
  }
  if (spec.pace && push.as() == PushAs::Gradient) {
    return head.step > 0 && head.count > 0 && head.count == spec.paced_elements(head.shard);
  }
  if (spec.kind == TableKind::Rows) return head.step == 0;
  const uint64_t elements = spec.shard_elements(head.shard);
  return head.step == 0 && head.first <= elements && head.count <= elements - head.first;
}

bool are_rows(const Push& push) {
  uint64_t rows = 0;
  for (const PushPart& part : push.parts) rows += part.rows;
  const bool may_be_empty = push.as() == PushAs::Restored;
  const bool have_buckets = std::ranges::all_of(push.parts, [&](const PushPart& part) {
    return part.bucket < kBuckets && (part.rows > 0 || may_be_empty);
  });
  return have_buckets && rows == push.head.count;
}

}  // namespace

std::optional<Push> read_push(const Record& record, const TableSpec& spec) {
  Push push{.head = record.head};
  const uint64_t parts_bytes = record.head.parts * sizeof(PushPart);
  const bool is_lent = record.head.loan > 0;
  const uint64_t rest = is_lent ? sizeof(LentValues) : bytes_of(spec, push.as(), record.head.count);
  if (record.head.parts == 0 || record.head.code > static_cast<uint16_t>(PushAs::Restored) ||
      record.body.size() != parts_bytes + rest + rates_bytes(push.as())) {
    return std::nullopt;
  }
  if (push.as() == PushAs::Gradient) {
    std::memcpy(&push.rates, &record.body[parts_bytes + rest], sizeof(Rates));
    if (!check(optimizer_of(spec), push.rates).ok()) return std::nullopt;
  }
  push.parts.resize(record.head.parts);
  std::memcpy(push.parts.data(), record.body.data(), parts_bytes);
  const bool has_rows = spec.kind == TableKind::Rows;
  if (has_rows ? !are_rows(push) : !is_range(push, spec)) return std::nullopt;
  if (!keeps_pace(push, spec)) return std::nullopt;
  if (is_lent) {
    const bool has_values = push.as() == PushAs::Gradient || push.as() == PushAs::Assigned;
    if (has_rows || !has_values) return std::nullopt;
    std::memcpy(&push.lent.emplace(), record.body.data() + parts_bytes, sizeof(LentValues));
    return push;
  }
  push.ids = record.body.data() + parts_bytes;
  const PushFloats floats = push_floats(spec, push.as());
  const uint64_t ids_bytes = has_rows ? record.head.count * sizeof(uint64_t) : 0;
  push.values = {reinterpret_cast<const float*>(push.ids + ids_bytes),
                 floats.before + record.head.count * floats.each};
  return push;
}

uint32_t rows_of(const Push& push, std::span<const uint32_t> parts) {
  uint32_t rows = 0;
  for (const uint32_t part : parts) rows += push.parts[part].rows;
  return rows;
}

uint64_t Forward::bytes() const {
  const uint64_t rows = spec.kind == TableKind::Rows ? rows_of(push, parts) : push.head.count;
  const uint64_t rest = is_lent() ? sizeof(LentValues) : bytes_of(spec, push.as(), rows);
  return parts.size() * sizeof(PushPart) + rest + rates_bytes(push.as());
}

RecordHead Forward::head() const {
  RecordHead head = push.head;
  head.bytes = static_cast<uint32_t>(bytes());
  head.parts = static_cast<uint32_t>(parts.size());
  if (spec.kind == TableKind::Rows) head.count = rows_of(push, parts);
  if (!is_lent()) head.loan = 0;
  return head;
}

void Forward::write(std::byte* body) const {
  const uint64_t of_rates = rates_bytes(push.as());
  std::memcpy(body + bytes() - of_rates, &push.rates, of_rates);
  std::byte* to = body;
  for (const uint32_t part : parts) {
    std::memcpy(to, &push.parts[part], sizeof(PushPart));
    to += sizeof(PushPart);
  }
  if (is_lent()) {
    std::memcpy(to, &*push.lent, sizeof(LentValues));
    return;
  }
  if (spec.kind == TableKind::Dense) {
    std::memcpy(to, push.values.data(), push.values.size_bytes());
    return;
  }
  // First the ids of all, then the values: where each part's begin is counted once for both.
  for (const bool of_values : {false, true}) {
    const auto* const from =
        of_values ? reinterpret_cast<const std::byte*>(push.values.data()) : push.ids;
    const uint64_t bytes =
        of_values ? push_floats(spec, push.as()).each * sizeof(float) : sizeof(uint64_t);
    uint64_t row = 0;
    auto next = parts.begin();
    for (uint32_t part = 0; part < push.parts.size() && next != parts.end(); ++part) {
      const uint64_t rows = push.parts[part].rows;
      if (part == *next) {
        std::memcpy(to, from + row * bytes, rows * bytes);
        to += rows * bytes;
        ++next;
      }
      row += rows;
    }
  }
}

}  // namespace rdmacoll::ps
