// Surroundings: what a client has around it: time, news on its connections, the newest map,
// connections to servers, and what it reads in their memory. ClientHost is the product's; tests put
// their own in its place. Floor: ps/client. Thread: the client's callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/work/work.h"
#include "csrc/memory/copy.h"
#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/table/shard_place.h"
#include "csrc/ps/wire/connection.h"
#include "csrc/ps/wire/mapped.h"
#include "csrc/ps/wire/push.h"

namespace rdmacoll::ps {

// How long a caller waits, and what may interrupt it.
struct Limit {
  Deadline deadline;
  InterruptCheck interrupt;
};

// A range of the newest version of a shard, in its server's memory.
struct ShardRange {
  ServerId server = kNoServer;
  ShardPlace place{};
  uint64_t version_bytes = 0;  // of the whole shard
  uint64_t first_byte = 0;
  std::span<std::byte> into{};
  Stores stores = Stores::Cached;  // Streamed: it is part of more than stays in the caches
};

// A read of one that is under way, or was.
class ShardRead {
 public:
  virtual ~ShardRead() = default;
  // Whether all of one version was read, of a shard that its server shows; nullopt: it is under
  // way, and writes to where it was asked to.
  virtual std::optional<bool> outcome() const = 0;
};

class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual const Clock& clock() const = 0;
  // Until something has come on a connection, or so many milliseconds have passed, or more.
  virtual Status wait(int64_t most_ms, const InterruptCheck& interrupt) = 0;
  virtual Result<BucketMap> newest_map() = 0;
  // A new connection to a server. PeerFailed: it has ended, as far as is known; another status:
  // there is none now.
  virtual Result<std::shared_ptr<Connection>> reach(ServerId server, const Limit& limit) = 0;
  // Whether what is in the server's memory can be read without its having a part in it.
  virtual bool can_read(ServerId server) const = 0;
  // nullptr: not now.
  virtual std::shared_ptr<const ShardRead> read(const ShardRange& range, const Limit& limit) = 0;
  // An extent of the server's memory.
  virtual Mapped mapped(ServerId server, uint32_t extent, const Limit& limit) = 0;
  // Where these bytes of this process lie, if it lends them to the server, as far as is known.
  virtual std::optional<LentPlace> lent(ServerId server, std::span<const std::byte> bytes) = 0;
  // Room for so many bytes that both servers read; it is free again when nobody holds it. nullptr:
  // there is none now; nullopt: it is not worth it, or they cannot read any.
  virtual std::optional<std::shared_ptr<float>> stage(ServerId primary, ServerId backup,
                                                      uint64_t bytes) = 0;
  // The server cannot read what it is lent: it is lent nothing until it is called anew.
  virtual void end_loans(ServerId server) = 0;
};

}  // namespace rdmacoll::ps
