// Answers. Floor: ps/server. Thread: the server's.
#include "csrc/ps/server/answers.h"

#include <algorithm>
#include <cstring>

namespace rdmacoll::ps {

void say_done(Connection& connection, uint64_t number) {
  if (connection.room(0) != nullptr) connection.send({.kind = RecordKind::Done, .number = number});
}

void say_elsewhere(Connection& connection, uint64_t number) {
  if (connection.room(0) != nullptr)
    connection.send({.kind = RecordKind::Elsewhere, .number = number});
}

void say_failed(Connection& connection, uint64_t number, const Status& why) {
  const uint64_t bytes = std::min<uint64_t>(why.message().size(), kMostReasonBytes);
  std::byte* const body = connection.room(bytes);
  if (body == nullptr) return;
  std::memcpy(body, why.message().data(), bytes);
  connection.send({.bytes = static_cast<uint32_t>(bytes),
                   .kind = RecordKind::Done,
                   .code = static_cast<uint16_t>(why.code()),
                   .number = number});
}

void say_values(Connection& connection, uint64_t number, uint64_t bytes) {
  connection.send(
      {.bytes = static_cast<uint32_t>(bytes), .kind = RecordKind::Values, .number = number});
}

void say_place(Connection& connection, uint64_t number, uint64_t bytes, const ShardPlace& place) {
  connection.send({.bytes = static_cast<uint32_t>(bytes),
                   .kind = RecordKind::Values,
                   .number = number,
                   .shard = place.extent,
                   .first = place.offset});
}

}  // namespace rdmacoll::ps
