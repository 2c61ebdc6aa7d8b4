// Push: a push as it has come, in a record that is kept until it is applied. It comes from outside,
// so reading trusts nothing: numbers are copied before they are looked at.
// Floor: ps/wire. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "csrc/ps/table/pace_steps.h"
#include "csrc/ps/table/push_as.h"
#include "csrc/ps/table/table_spec.h"
#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

// The body: the parts; of a table of rows the ids of all of them; the values.
struct Push {
  RecordHead head;
  std::vector<PushPart> parts{};
  const std::byte* ids = nullptr;  // of rows, one after the other; need no alignment
  std::span<const float> values{};

  PushAs as() const { return static_cast<PushAs>(head.code); }
  WorkerStep step() const { return {head.rank, head.step}; }
  uint64_t id(uint64_t row) const {
    uint64_t id = 0;
    std::memcpy(&id, ids + row * sizeof(id), sizeof(id));
    return id;
  }
};

// nullopt: it makes no sense for such a table.
std::optional<Push> read_push(const Record& record, const TableSpec& spec);

// Of these of its parts.
uint32_t rows_of(const Push& push, std::span<const uint32_t> parts);
// The same, with these of its parts, as another server is told it.
uint64_t forward_bytes(const Push& push, std::span<const uint32_t> parts, const TableSpec& spec);
void write_forward(const Push& push, std::span<const uint32_t> parts, const TableSpec& spec,
                   std::byte* to);

}  // namespace rdmacoll::ps
