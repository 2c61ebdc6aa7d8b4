// Pushes: how a server takes pushes. A primary applies one in its turn and hands it to the bucket's
// backup, which does the same; the worker is told that it is done when both have it. What is sent
// again, as a server was lost on the way, is handed on again, and applied once.
// Floor: ps/server. Thread: the server's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "csrc/ps/server/installs.h"
#include "csrc/ps/server/server_connections.h"
#include "csrc/ps/server/state.h"
#include "csrc/ps/wire/connection.h"
#include "csrc/ps/wire/push.h"

namespace rdmacoll::ps {

class Pushes {
 public:
  Pushes(State& state, ServerConnections& servers, const Installs& installs)
      : state_(state), servers_(servers), installs_(installs) {}

  // A worker's. False: there is no room at a backup yet, and it is to be tried again.
  bool take(const std::shared_ptr<Connection>& connection, Push push);
  // One that a primary has handed on. False: this server's map is older, and it is to be tried
  // again.
  bool take_forward(Connection& connection, ServerId from, const Push& push);
  // Tells workers of what is done by now; whether there was any.
  bool settle();

  // Whether who is the bucket's backup, or is to be it, may lack a push: the map has to be another
  // one, though that server may answer again by now.
  bool has_failed(uint32_t bucket) const {
    return failed_[bucket] && *failed_[bucket] == state_.map.of(bucket).epoch;
  }
  // Whether all pushes to the bucket are confirmed.
  bool is_quiet(uint32_t bucket) const;
  uint64_t count() const { return count_; }
  // The table was dropped: none of its steps will be whole.
  void drop(const ServerTable& table) { give_back(table, std::nullopt, {}); }

 private:
  struct Answer {
    bool has_come = false;
    Status status{};
  };
  using AnswerPtr = std::shared_ptr<Answer>;
  // A gradient that is kept where its worker has it, until the step is whole.
  struct Borrowed {
    uint32_t table = 0;
    uint32_t shard = 0;
    WorkerStep step{};
  };
  // One that the backups have not confirmed yet, or whose gradient is borrowed.
  struct Waiting {
    std::shared_ptr<Connection> connection;
    uint64_t number = 0;
    Status how{};  // what the worker is told when it is done
    std::optional<Borrowed> borrowed{};
    // For each backup, or who is to be it.
    struct Handed {
      ServerId to = kNoServer;
      std::vector<PushPart> parts{};
      AnswerPtr answer{};
    };
    std::vector<Handed> handed{};
  };
  // Borrows: nothing else is waited for, of what was handed on.
  enum class Verdict : uint8_t { Done, Waits, Borrows, Elsewhere };
  // The parts, by the backups of their buckets.
  using Groups = std::map<ServerId, std::vector<uint32_t>>;
  Groups by_backup(const Push& push) const;
  bool have_room(const Groups& groups, const Push& push, const TableSpec& spec);
  AnswerPtr hand_on(ServerId backup, const Push& push, std::span<const uint32_t> parts,
                    const TableSpec& spec);
  void apply(ServerTable& table, const Push& push);
  // Of a table with a pace: what the push borrows, or has others give back.
  void note_pace(const ServerTable& table, const Push& push, Waiting& waiting);
  // What a shard, or any of the table, borrows no more. Its workers are told so once backups have
  // confirmed `also`, and borrow it no more either.
  void give_back(const ServerTable& table, std::optional<uint32_t> shard,
                 const std::vector<Waiting::Handed>& also);
  static void answer(const Waiting& waiting);
  Verdict verdict(const Waiting& waiting);

  State& state_;
  ServerConnections& servers_;
  const Installs& installs_;
  std::vector<Waiting> waiting_;
  std::array<std::optional<uint32_t>, kBuckets> failed_{};  // at which epoch
  uint64_t count_ = 0;
};

}  // namespace rdmacoll::ps
