// Saves: what a server says of all that is kept of a table, for snapshots, and how it is told that
// again. Floor: ps/server. Thread: the server's.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/ps/server/server_table.h"
#include "csrc/ps/server/state.h"
#include "csrc/ps/wire/connection.h"
#include "csrc/ps/wire/push.h"

namespace rdmacoll::ps {

// A shard as it was when a worker asked for the first part of it: all parts of it are of one
// version, though others push meanwhile. Each worker has one at most.
struct ShardCopy {
  uint32_t table = 0;
  uint32_t shard = 0;
  uint64_t pushes = 0;
  std::vector<std::vector<float>> arrays{};
};

// Each answers on the connection: Ok; or what the asker is told instead.
Status save_shard(State& state, ServerTable& table, Connection& connection, const Record& record,
                  ShardCopy& copy);
Status list_rows(const State& state, const ServerTable& table, Connection& connection,
                 const Record& record);
Status save_rows(const State& state, ServerTable& table, Connection& connection,
                 const Record& record);

// One part of a push that restores, whose rows begin with this one.
void restore(ServerTable& table, const Push& push, const PushPart& part, uint64_t first_row);

}  // namespace rdmacoll::ps
