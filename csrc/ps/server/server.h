// Server: one server of a parameter server: what it has of the tables, and what workers ask of it.
// It knows lines and memory as interfaces, so that tests put their own in their place.
// Floor: ps/server. Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "csrc/ps/server/server_table.h"
#include "csrc/ps/server/shard_memory.h"
#include "csrc/ps/wire/line.h"

namespace rdmacoll::ps {

struct ServerStats {
  uint64_t tables = 0;
  uint64_t rows = 0;
  uint64_t elements = 0;  // of dense tables, as far as they are here
  uint64_t pushes = 0;    // records
  uint64_t pulls = 0;
};

class Server {
 public:
  // The memory outlives it.
  explicit Server(ShardMemory& memory) : memory_(memory) {}

  // With another process, until its line has failed.
  void add(std::shared_ptr<Line> line) { lines_.push_back(std::move(line)); }
  // Answers what has come; whether anything had.
  bool turn();
  size_t lines() const { return lines_.size(); }
  ServerStats stats() const;

 private:
  bool answer_all(Line& line);
  void answer(Line& line, const Record& record);
  // Ok, or what the asker is told instead of an answer.
  Status act(Line& line, const Record& record);
  Status create(Line& line, const Record& record);
  Status push_range(Line& line, const Record& record);
  Status push_rows(Line& line, const Record& record);
  Status pull_range(Line& line, const Record& record);
  Status pull_rows(Line& line, const Record& record);
  Status locate(Line& line, const Record& record);
  Result<ServerTable*> table_of(const Record& record, TableKind kind);
  Result<DenseShard*> range_of(const Record& record);

  ShardMemory& memory_;
  std::vector<std::shared_ptr<Line>> lines_;
  std::map<uint32_t, ServerTable> tables_;
  ServerStats counts_;
};

}  // namespace rdmacoll::ps
