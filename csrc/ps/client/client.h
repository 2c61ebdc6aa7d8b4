// Client: a worker's side of a parameter server: it finds out which servers have what is pushed or
// pulled, and asks them, or reads it in their memory. If one is lost, or has given a bucket away,
// it asks the one that has that now, as long as the caller waits. Nobody works for it in the
// background: what is answered is taken while somebody calls or waits. Floor: ps/client. Thread:
// any.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/ps/client/balance.h"
#include "csrc/ps/client/batch.h"
#include "csrc/ps/client/direct_reads.h"
#include "csrc/ps/client/errand.h"
#include "csrc/ps/client/own_rates.h"
#include "csrc/ps/client/row_reads.h"
#include "csrc/ps/client/surroundings.h"
#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/table/pace_steps.h"
#include "csrc/ps/table/push_as.h"
#include "csrc/ps/table/table_spec.h"
#include "csrc/ps/wire/calls.h"
#include "csrc/ps/wire/push.h"

namespace rdmacoll::ps {

struct Rebalanced {
  double before = 1;  // what the busiest server had, of what all had on the average
  double after = 1;
  uint32_t buckets = 0;  // that were handed over
};

// Of one whose workers do not go in step.
Status no_pace(const TableSpec& spec);

class Client {
 public:
  // number: of this worker, which no other has had. The surroundings outlive it.
  Client(uint64_t number, BucketMap map, Surroundings& surroundings);

  void add_server(ServerId server, std::shared_ptr<Connection> connection);
  // The table, of which servers hear when they are first asked for something of it.
  Status create(uint32_t table, const TableSpec& spec);
  // Each returns when its bytes may be changed; bytes that are lent to servers may be changed when
  // the batch has ended. That ends when all servers have answered. It may have ended at once:
  // InvalidArgument: what is named is not in the table, and nothing is done.
  // step: of a gradient for a table with a pace, whose workers push all that the pace says. own: of
  // a gradient. keeps: what the values are in, if they are lent and the caller does not keep it.
  BatchPtr push_range(uint32_t table, uint64_t first, std::span<const float> values, PushAs as,
                      const Limit& limit, WorkerStep step = {}, const OwnRates& own = {},
                      std::shared_ptr<const void> keeps = nullptr);
  // values: a row for each id, one after the other. Those of one id are added up first, in their
  // order; of assigned ones the last counts.
  BatchPtr push_rows(uint32_t table, std::span<const uint64_t> ids, const float* values, PushAs as,
                     const Limit& limit, const OwnRates& own = {});
  // The values are written until the batch has ended, failed or not.
  // step: that all workers have pushed, for as long as it waits for the slowest one. keeps: what
  // the values are in, if the caller does not keep it where it waits in vain.
  BatchPtr pull_range(uint32_t table, uint64_t first, std::span<float> values, const Limit& limit,
                      uint32_t step = 0, std::shared_ptr<const void> keeps = nullptr);
  BatchPtr pull_rows(uint32_t table, std::span<const uint64_t> ids, float* values,
                     const Limit& limit) {
    return ask_rows(RecordKind::PullRows, table, ids, values, limit);
  }

  // --- snapshots (saves.cc) ---------------------------------------------------------------------
  // All that is kept of a shard: for each of its arrays pushes and floats (table/saved.h). They are
  // of one version if the numbers of pushes are the same; if not, a server was lost on the way.
  BatchPtr save_shard(uint32_t table, uint64_t shard, std::span<float> saved, const Limit& limit);
  // The same as it was saved. Nobody else pushes to the table meanwhile.
  BatchPtr restore_shard(uint32_t table, uint64_t shard, std::span<const float> saved,
                         const Limit& limit);
  // The ids that a bucket has, the lowest ones from one on: first how many, then the ids.
  BatchPtr list_rows(uint32_t table, uint32_t bucket, uint64_t from, std::span<uint64_t> listed,
                     const Limit& limit);
  // All that is kept of rows: for each pushes and floats. push_rows() as Restored takes the same.
  BatchPtr save_rows(uint32_t table, std::span<const uint64_t> ids, float* saved,
                     const Limit& limit) {
    return ask_rows(RecordKind::SaveRows, table, ids, saved, limit);
  }
  // The table has no rows any more.
  BatchPtr empty_rows(uint32_t table, const Limit& limit);

  // --- tables with a pace (steps.cc) ------------------------------------------------------------
  // So many workers go in step from now on. step: that all of them have made, where each steps for
  // itself; else it is the last one that all before have made.
  BatchPtr begin_generation(uint32_t table, Generation generation, uint32_t step,
                            const Limit& limit);
  // The last step that each of so many workers, by its rank, has pushed all of; 0: of none.
  Result<std::vector<uint32_t>> pull_steps(uint32_t table, uint32_t workers, const Limit& limit);

  // --- balance (rebalance.cc) -------------------------------------------------------------------
  // Looks for so long how much is pushed to and pulled of each bucket, has servers hand some over
  // to their backups, and returns when these are primaries. PeerFailed: a server was lost
  // meanwhile.
  Result<Rebalanced> rebalance(int64_t over_ms, const Limit& limit);
  // Ok, or what went wrong with it; Timeout: it goes on.
  Status wait(const BatchPtr& batch, const Limit& limit);
  bool is_done(const BatchPtr& batch);

 private:
  using Lock = std::unique_lock<std::mutex>;
  using WriteBody = std::function<void(std::byte* body)>;
  Result<const TableSpec*> spec_of(uint32_t table, TableKind kind) const;
  static Status check_ids(const TableSpec& spec, std::span<const uint64_t> ids);
  // make: one errand after the other.
  template <typename Make>
  BatchPtr as_batch(Make make) {
    auto batch = std::make_shared<Batch>();
    Lock lock(mutex_);
    batch->end_call(make(lock, batch));
    return batch;
  }
  // call_shard: for each that so many workers push to in a step.
  template <typename CallShard>
  BatchPtr paced_batch(uint32_t table, uint32_t workers, CallShard call_shard);
  // check: of the table's spec; call_piece: for each shard of the range.
  template <typename Check, typename CallPiece>
  BatchPtr range_batch(uint32_t table, uint64_t first, uint64_t count, Check check,
                       CallPiece call_piece);
  // The number of a push to the bucket. It is taken when the push is sent: another thread may be
  // first while one waits for room.
  uint64_t next_push(uint32_t bucket) { return ++pushes_[bucket]; }
  // How many pushes are not acknowledged: of dense tables those to the bucket, of rows those to the
  // table.
  uint64_t& open_pushes(const RecordHead& head) {
    if (tables_.at(head.table).kind == TableKind::Rows) return open_row_pushes_[head.table];
    return open_pushes_[bucket_of_shard(head.table, head.shard)];
  }

  BatchPtr ask_rows(RecordKind kind, uint32_t table, std::span<const uint64_t> ids, float* into,
                    const Limit& limit);
  // Waits for room, and asks. The lock is given up while it waits.
  Status ask(Lock& lock, ServerId server, Errand errand, uint64_t body_bytes,
             const WriteBody& write, const Limit& limit);
  bool is_reached(ServerId server) const;
  // In the place of a connection that there was.
  void use(ServerId server, std::shared_ptr<Connection> connection);
  // False: there is no room now.
  bool try_ask(ServerId server, Errand& errand, uint64_t body_bytes, const WriteBody& write);
  void end(const Errand& errand, ServerId server, const Status& how,
           std::span<const std::byte> sent);
  // Where the server has what was asked for, if it can be read there.
  void learn(const RecordHead& asked, ServerId server, const RecordHead& answered);
  // Of every errand: where it begins, and where it ends, whatever was tried in between.
  // calls: how many more requests it has become.
  void begin(const Errand& errand, uint64_t calls = 1);
  void finish(const Errand& errand, const Status& how);
  bool take_answers();
  // One round. Ok: look again.
  Status go_on(Lock& lock, const Limit& limit);

  // rebalance.cc
  Status ask_server(Lock& lock, ServerId server, RecordKind kind, std::span<const std::byte> body,
                    Calls::Call call, const Limit& limit);
  Result<Loads> pull_loads(Lock& lock, const Limit& limit);
  Status pause(Lock& lock, int64_t ms, const Limit& limit);

  // direct.cc: without asking.
  // Whether a pull of a range was begun so.
  bool read(const Errand& errand, const Limit& limit);
  bool begin_read(const Errand& errand, ServerId from, const Limit& limit);
  // The server says that its step is reached.
  void read_reached(Errand errand, ServerId server);
  bool take_reads();  // whether any had ended
  // Whether rows of the table may be read now, and it is known where they lie.
  bool may_read_rows(uint32_t table);
  // Whether it is known who the primaries are, and nobody else acknowledges anything meanwhile.
  bool knows_primaries();

  // lending.cc
  std::optional<LentValues> lend(Errand& push, std::span<const float> values,
                                 const BucketMap::Place& place);
  Result<std::optional<LentValues>> stage(Lock& lock, Errand& push, std::span<const float> values,
                                          const BucketMap::Place& place, const Limit& limit);

  // recovery.cc: what is to be asked again.
  // A push was refused: servers are to count its number.
  void fill_gap(const RecordHead& refused, std::span<const std::byte> sent);
  bool redo(const Limit& limit);
  enum class Asked : uint8_t { Yes, NotYet, Never };
  Asked redo(Redo& one, ServerId server, bool knows_map, const Limit& limit);
  bool look_for_map();
  // Servers that do not answer, and have nothing any more by the newest map, are asked no more.
  void suspect();
  void give_up(const Redo& one, const std::string& why);
  // Whether those of one of its buckets have: the map is the newest, and so are they.
  bool have_backups_ended(const Redo& one, const Limit& limit);

  const uint64_t number_;
  Surroundings& surroundings_;
  std::mutex mutex_;  // what follows
  BucketMap map_;
  int64_t map_known_ns_ = 0;  // when it was the newest, as far as is known; 0: it is not
  std::map<ServerId, Calls> servers_;
  std::map<uint32_t, TableSpec> tables_;
  std::array<uint64_t, kBuckets> pushes_{};
  std::array<uint64_t, kBuckets> open_pushes_{};
  std::map<uint32_t, uint64_t> open_row_pushes_;
  DirectReads direct_;
  RowReads row_reads_;
  std::deque<Redo> redo_;  // those of one bucket in their order
  uint64_t redone_ = 0;    // pushes that are asked again, or were
  int64_t look_again_ns_ = 0;
  int64_t suspect_ns_ = 0;  // when, if nothing is answered until then
};

}  // namespace rdmacoll::ps
