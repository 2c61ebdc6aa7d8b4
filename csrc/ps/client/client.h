// Client: a worker's side of a parameter server: it finds out which servers have what is pushed or
// pulled, and asks them. Nobody works for it in the background: what is answered is taken while
// somebody calls or waits. Floor: ps/client. Thread: any, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/engine/work/work.h"
#include "csrc/ps/client/batch.h"
#include "csrc/ps/client/calls.h"
#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/table/table_spec.h"
#include "csrc/ps/wire/line.h"

namespace rdmacoll::ps {

// What a client waits by.
struct Limit {
  Deadline deadline;
  InterruptCheck interrupt;
};

// How a client waits: until something has come on any of its lines, or the deadline.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual Status wait(const Limit& limit) = 0;
};

class Client {
 public:
  // lines: by server, of which the map has no other. The waiter and the clock outlive it.
  struct Server {
    std::shared_ptr<Line> line;
    std::string who;
  };
  Client(std::vector<Server> servers, BucketMap map, Waiter& waiter, const Clock& clock);

  // The table, which all servers have once this has returned.
  Status create(uint32_t table, const TableSpec& spec, const Limit& limit);
  // Each returns when its bytes may be changed; the batch ends when all servers have answered. Its
  // status may say at once that it has failed: InvalidArgument: what is named is not in the table,
  // and nothing is done; another one: it is done in part.
  BatchPtr push_range(uint32_t table, uint64_t first, std::span<const float> values, PushAs as,
                      const Limit& limit);
  // values: a row for each id, one after the other. Those of one id are added up first, in their
  // order; of assigned ones the last counts.
  BatchPtr push_rows(uint32_t table, std::span<const uint64_t> ids, const float* values, PushAs as,
                     const Limit& limit);
  // The values are written until the batch has ended, failed or not.
  BatchPtr pull_range(uint32_t table, uint64_t first, std::span<float> values, const Limit& limit);
  BatchPtr pull_rows(uint32_t table, std::span<const uint64_t> ids, float* values,
                     const Limit& limit);
  // Ok, or what went wrong with it; Timeout: it goes on.
  Status wait(const BatchPtr& batch, const Limit& limit);
  bool is_done(const BatchPtr& batch);

 private:
  using Lock = std::unique_lock<std::mutex>;
  using WriteBody = std::function<void(std::byte* body)>;
  Result<const TableSpec*> spec_of(uint32_t table, TableKind kind) const;
  static Status check_ids(const TableSpec& spec, std::span<const uint64_t> ids);
  // Waits for room, and makes the call. The lock is given up while it waits.
  Status call(Lock& lock, ServerId server, RecordHead head, uint64_t body_bytes,
              const WriteBody& write, Calls::Call call, const Limit& limit);
  bool take_answers();
  Status wait_for_more(Lock& lock, const Limit& limit);
  template <typename Make>
  BatchPtr as_batch(Make make);
  // call_piece: for each shard of the range.
  template <typename CallPiece>
  BatchPtr range_batch(uint32_t table, uint64_t first, uint64_t count, CallPiece call_piece);

  Waiter& waiter_;
  const Clock& clock_;
  std::mutex mutex_;  // what follows
  std::vector<Calls> servers_;
  BucketMap map_;
  std::map<uint32_t, TableSpec> tables_;
};

}  // namespace rdmacoll::ps
