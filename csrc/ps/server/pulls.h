// Pulls: how a server answers pulls, of what it may say is in its buckets. One that waits for a
// step of all workers is put aside; what is behind it in its ring does not wait. Floor: ps/server.
// Thread: the server's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "csrc/ps/server/state.h"
#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

class Pulls {
 public:
  explicit Pulls(State& state) : state_(state) {}

  // Each answers, or puts aside: Ok; or what the asker is told instead.
  Status range(const std::shared_ptr<Connection>& connection, const RecordHead& head);
  Status steps(Connection& connection, const RecordHead& head);
  Status rows(Connection& connection, const Record& record);
  // Answers those that wait no more; whether there was any.
  bool settle();
  uint64_t count() const { return count_; }

 private:
  struct Waiting {
    std::shared_ptr<Connection> connection;
    RecordHead head;
  };
  // nullptr: it is not here, and the asker is told.
  Result<DenseShard*> shard_of(Connection& connection, const RecordHead& head);
  // False: one of them is not here. System: there is no room for one that is new.
  Result<bool> write_rows(ServerTable& table, std::span<const std::byte> ids, std::byte* to);
  // False: not all workers have pushed that step.
  Result<bool> answer_range(Connection& connection, const RecordHead& head);

  State& state_;
  std::vector<Waiting> waiting_;
  uint64_t count_ = 0;
};

}  // namespace rdmacoll::ps
