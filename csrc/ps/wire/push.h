// Push: a push as it has come, in a record that is kept until it is applied. It comes from outside,
// so reading trusts nothing: numbers are copied before they are looked at.
// Floor: ps/wire. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/table/pace_steps.h"
#include "csrc/ps/table/push_as.h"
#include "csrc/ps/table/table_spec.h"
#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

// Of bytes that a worker lends to servers: they read them in its memory, until the push is done.
struct LentPlace {
  uint32_t loan = 0;  // the worker's number of it; 0 is none
  uint64_t offset = 0;
};

// In a push, in the place of its values.
struct LentValues {
  uint64_t offset = 0;        // in the loan, in bytes
  uint32_t also = kNoServer;  // another server that has the loan: it need not be sent the values
  // 1: they stay there until the push is done, however long that takes.
  uint32_t stay = 0;
};
static_assert(sizeof(LentValues) == 16);

// The body: the parts; of a table of rows the ids of all of them; the values, or where those are;
// of a gradient the rates that it is applied with.
struct Push {
  RecordHead head;
  std::vector<PushPart> parts{};
  const std::byte* ids = nullptr;   // of rows, one after the other; need no alignment
  std::span<const float> values{};  // of lent ones empty until they are found
  std::optional<LentValues> lent{};
  std::shared_ptr<const void> keeps{};  // values that are lent
  Rates rates{};

  PushAs as() const { return static_cast<PushAs>(head.code); }
  WorkerStep step() const { return {head.rank, head.step, head.first}; }
  StepGradient gradient() const { return {values, rates, lent && lent->stay == 1, keeps}; }
  Generation generation() const { return {head.first, head.rank}; }
  uint64_t id(uint64_t row) const {
    uint64_t id = 0;
    std::memcpy(&id, ids + row * sizeof(id), sizeof(id));
    return id;
  }
};

// In the place of a push to a dense table that was refused: nothing is assigned, and its number
// counts, so that those behind it come in their turn.
constexpr bool is_filler(const RecordHead& head) {
  return head.count == 0 && static_cast<PushAs>(head.code) == PushAs::Assigned;
}

constexpr uint64_t rates_bytes(PushAs as) { return as == PushAs::Gradient ? sizeof(Rates) : 0; }

// nullopt: it makes no sense for such a table.
std::optional<Push> read_push(const Record& record, const TableSpec& spec);

// Of these of its parts.
uint32_t rows_of(const Push& push, std::span<const uint32_t> parts);
// The same, with these of its parts, as another server is told it. Where that has the loan, too, it
// is told where the values are.
struct Forward {
  const Push& push;
  std::span<const uint32_t> parts;
  const TableSpec& spec;
  ServerId to = kNoServer;

  bool is_lent() const { return push.lent && push.lent->also == to; }
  uint64_t bytes() const;
  RecordHead head() const;
  void write(std::byte* body) const;
};

}  // namespace rdmacoll::ps
