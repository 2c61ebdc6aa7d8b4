// Server: one server of a parameter server: what it has of the tables, and what workers and other
// servers ask of it. It knows connections, memory and time as interfaces, so that tests put their
// own in their place. Floor: ps/server. Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/ps/server/arrival.h"
#include "csrc/ps/server/lent_memory.h"
#include "csrc/ps/server/pulls.h"
#include "csrc/ps/server/pushes.h"
#include "csrc/ps/server/saves.h"
#include "csrc/ps/server/shard_memory.h"
#include "csrc/ps/server/state.h"
#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

struct ServerStats {
  uint64_t tables = 0;
  uint64_t rows = 0;
  uint64_t elements = 0;      // of dense tables, as far as they are here
  uint64_t buckets = 0;       // of which it is the primary
  uint64_t alone = 0;         // of these, that have no backup, though they are to have one
  uint64_t without_room = 0;  // buckets that others have told it of, and it has no room for
  uint64_t pushes = 0;        // records that it has applied
  uint64_t pulls = 0;
  uint64_t memory_bytes = 0;  // that all tables take
  // Of each table, where it is the primary.
  std::map<uint32_t, uint64_t> rows_of{};
  // Of tables with a pace: the last step that each worker has pushed everywhere, by ranks.
  std::map<uint32_t, std::vector<uint32_t>> steps_of{};
};

class Server {
 public:
  // The memory and the clock outlive it.
  // replicas: 2: each bucket is to have a backup.
  Server(ServerId me, uint32_t replicas, BucketMap map, ShardMemory& memory, const Clock& clock);

  // A connection that another process has asked for: a worker, or the server of a number, which
  // hands this one what it is the backup of.
  void add(std::shared_ptr<Connection> connection, ServerId from = kNoServer);
  // A connection that this server has asked another one for, to do likewise.
  void add_backup(ServerId server, std::shared_ptr<Connection> connection);
  // What workers lend to this server.
  LentMemory& lent() { return lent_; }
  // The server does not answer: it is as if it had ended, until there is a new connection to it.
  void give_up(ServerId server) { servers_.give_up(server); }
  // The table is no more, nor comes back: who pushes or pulls is told so. What this returns is as
  // of ShardMemory::let_go().
  std::shared_ptr<void> drop(uint32_t table);
  // The server has come while the job runs, and is to get its share of the buckets.
  void arrive() { arrival_.begin(); }
  // Answers what has come; whether anything had.
  bool turn();
  ServerStats stats() const;

  // --- the map ----------------------------------------------------------------------------------
  const BucketMap& map() const { return state_.map; }
  // The map that this server wants to be the next one, as others are lost; nullopt: it is content.
  std::optional<BucketMap> wish() const;
  // The backups of these buckets are to be their primaries, and this server the backup. Pushes wait
  // until those before them are confirmed, so that both have the same.
  void hand_over(std::span<const uint32_t> buckets);
  // The map is this one, as was known at the time: until a lease after it, nobody else believes
  // that he has what this server has. Older ones than the newest are passed over.
  void adopt(const BucketMap& map, int64_t known_ns);

 private:
  struct Peer {
    std::shared_ptr<Connection> connection;
    ServerId from = kNoServer;
    ShardCopy copy{};              // of what it saves
    std::optional<Record> held{};  // that could not be answered yet; those behind it wait
  };
  // Of a table, to the others.
  void add_rows(const ServerTable& table, ServerStats& stats) const;
  void add_steps(const ServerTable& table, ServerStats& stats) const;
  bool answer_all(Peer& peer);
  // False: not yet.
  bool answer(Peer& peer, const Record& record);
  // Ok, or what the asker is told instead of an answer.
  Status act(Peer& peer, const Record& record, bool& is_held);
  Status create(Connection& connection, const Record& record);
  Status push(Peer& peer, const Record& record, bool& is_held);
  Status install(Peer& peer, const Record& record, bool& is_held);
  Status save(Peer& peer, const Record& record);
  Status pull_loads(Connection& connection, const RecordHead& head) const;
  Status hand_over(Connection& connection, const Record& record);
  Status offer(Peer& peer, const Record& record);

  State state_;
  ServerConnections servers_;
  Installs installs_;
  Pushes pushes_;
  Pulls pulls_;
  LentMemory lent_;
  Arrival arrival_;
  std::vector<Peer> peers_;
  std::set<uint32_t> dropped_;  // tables, also such as it has never had
};

}  // namespace rdmacoll::ps
