// Installs: how a bucket that has lost its backup gets another one, or one that wants to be it. Its
// primary tells that server all that is in the bucket, and hands it every push from then on; when
// it has all of it, the primary asks for a map that says so. Pushes to a bucket wait while it is
// told. Where nothing is kept twice, that server is to be the primary, and this one has nothing.
// Floor: ps/server. Thread: the server's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "csrc/ps/server/server_connections.h"
#include "csrc/ps/server/state.h"
#include "csrc/ps/wire/connection.h"
#include "csrc/ps/wire/install.h"

namespace rdmacoll::ps {

class Installs {
 public:
  Installs(State& state, ServerConnections& servers) : state_(state), servers_(servers) {
    count_alone();
  }

  // --- the primary ------------------------------------------------------------------------------
  // Begins and goes on; whether anything was sent. It leaves room for pushes.
  bool turn();
  // Who is handed what is pushed to the bucket, though the map does not say so yet.
  ServerId joining(uint32_t bucket) const;
  // Pushes to it wait.
  bool is_being_told(uint32_t bucket) const { return telling_ && telling_->bucket == bucket; }
  // Who has all that is in the bucket, and is to be its backup.
  ServerId ready(uint32_t bucket) const;
  // Who was chosen is lost, and a map that names it may be asked for by now: the map has to be
  // another one, so that this one is not taken.
  bool has_failed(uint32_t bucket) const;
  bool may_be_named(uint32_t bucket) const {
    const auto found = joining_.find(bucket);
    return found != joining_.end() && found->second->was_ready;
  }
  // The server wants to be the bucket's backup.
  void offer(uint32_t bucket, ServerId by);

  // --- the other server -------------------------------------------------------------------------
  // False: this server's map is older, and it is to be tried again. Otherwise `how` says what is
  // wrong with it; Aborted: the bucket is another's by now.
  bool take(const Record& record, ServerId from, Status& how);
  // Whether this server has been told anything of the bucket, for which no map names it yet.
  bool was_told(uint32_t bucket) const { return told_by_[bucket].from != kNoServer; }
  // Whether it has been told what is in the bucket by this primary, of an epoch.
  bool was_told(uint32_t bucket, ServerId from, uint32_t epoch) const;
  // How many buckets others have told it of that it has no room for. One that changes hands counts
  // no more.
  uint64_t without_room() const { return without_room_.size(); }

  // The map is another one than before.
  void adopt(const BucketMap& before);
  // Nobody is told of the table any more.
  void drop(uint32_t table);

 private:
  struct Joining {
    ServerId server = kNoServer;
    uint64_t open = 0;  // records that are not answered
    bool is_told = false;
    bool was_ready = false;
    bool has_failed = false;
  };
  struct Told {  // by another server
    ServerId from = kNoServer;
    uint32_t epoch = 0;
  };
  // A record to be sent: of a table, or none.
  struct Piece {
    RecordHead head;
    uint64_t bytes = 0;
    std::function<void(std::byte*)> write;
    std::optional<uint32_t> table{};
  };
  // The bucket that is told now.
  struct Telling {
    uint32_t bucket = 0;
    std::deque<Piece> pieces{};
  };
  void count_alone();
  bool is_lost(const Joining& joining) const;
  bool is_ready(const Joining& joining) const;
  void let_go_of_lost();
  void choose();
  void tell(uint32_t bucket, ServerId to);
  void add_dense(Telling& telling, uint32_t epoch, ServerTable& table) const;
  static void add_pace(Telling& telling, uint32_t epoch, uint32_t table, uint64_t shard,
                       const DenseShard& from);
  void add_rows(Telling& telling, uint32_t epoch, ServerTable& table) const;
  bool send_next();
  void end_telling();
  Status load(const Record& record, const InstallHead& head);
  static bool load_dense(const InstallHead& head, std::span<const std::byte> rest,
                         DenseShard& shard);

  State& state_;
  ServerConnections& servers_;
  std::map<uint32_t, std::shared_ptr<Joining>> joining_;  // by bucket
  std::array<Told, kBuckets> told_by_{};
  std::set<uint32_t> without_room_;  // buckets, told by others
  std::optional<Telling> telling_{};
  std::array<int64_t, kBuckets> not_before_ns_{};  // another server is chosen
  uint32_t next_ = 0;                              // the bucket that is looked at next
  uint32_t alone_ = 0;  // buckets of this primary that have no backup, and are to have one
  std::map<uint32_t, ServerId> offers_;  // by bucket: who wants to be its backup
};

}  // namespace rdmacoll::ps
