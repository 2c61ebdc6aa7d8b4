// Answers: what a server says to who asks. There is room for every answer: who asks has reserved it
// (wire/calls.h). Floor: ps/server. Thread: the server's.
#pragma once

#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/ps/table/shard_place.h"
#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

void say_done(Connection& connection, uint64_t number);
// The server has not the bucket, or not now.
void say_elsewhere(Connection& connection, uint64_t number);
void say_failed(Connection& connection, uint64_t number, const Status& why);
// They were written to the connection's room.
void say_values(Connection& connection, uint64_t number, uint64_t bytes);
// Likewise. The place is that of the shard, or of the rows' directory.
void say_place(Connection& connection, uint64_t number, uint64_t bytes, const ShardPlace& place);

}  // namespace rdmacoll::ps
