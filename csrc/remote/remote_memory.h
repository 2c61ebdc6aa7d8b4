// RemoteMemory: memory of this process that others read, or read and write, as far as it is exposed
// to them. It is a segment of its own, so that its rights are its own, too.
// Floor: remote. Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/engine/session/sessions.h"
#include "csrc/memory/region.h"
#include "csrc/memory/shared_segment.h"

namespace rdmacoll {

class RemoteMemory;

// Those of a process that there are.
class RemoteMemories {
 public:
  void add(RemoteMemory& memory);
  void remove(RemoteMemory& memory);
  // That in which these bytes lie; nullptr: they are in none.
  std::shared_ptr<RemoteMemory> find(const void* data, uint64_t bytes) const;
  // For a transfer from there or to there: the region, which stays what it is while in_use is held.
  struct Local {
    RegionId region = kNoRegion;  // kNoRegion: they are in none
    std::shared_ptr<const void> in_use{};
  };
  Local local(const void* data, uint64_t bytes) const;
  uint64_t bytes() const;
  // The session has ended.
  void forget(const SessionPtr& session) const;

 private:
  RemoteMemory* at(const void* data, uint64_t bytes) const;

  mutable std::mutex mutex_;
  std::set<RemoteMemory*> all_;
};

// What memory stands on; `keeps` holds the first two.
struct RemoteMemoryContext {
  Transports& transports;
  Sessions& sessions;
  std::shared_ptr<RemoteMemories> all;
  std::shared_ptr<void> keeps;
};

class RemoteMemory : public std::enable_shared_from_this<RemoteMemory> {
 public:
  // Zeroed; pages are taken when they are first touched, but where a device registers them at once.
  static Result<std::shared_ptr<RemoteMemory>> make(const RemoteMemoryContext& context,
                                                    uint64_t bytes, Others others);
  // Takes it back: who has it open is told to close it.
  ~RemoteMemory();
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  bool holds(uint64_t offset, uint64_t count) const {
    return offset <= bytes_ && count <= bytes_ - offset;
  }
  Others others() const { return others_; }
  uint64_t offset_of(const void* data) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(data) - data_);
  }
  RemoteMemories::Local local() const;
  // With what the other process of a session opens it; offers it to it, once. "": not now.
  Result<std::string> offer(const SessionPtr& session);
  // That has ended.
  void forget(const SessionPtr& session);

  // Does something in the driver, in each of its rounds until it returns true; or why it has not.
  using InDriver = std::function<Status(std::function<bool()>)>;
  // Whoever has it open, of others, reaches it no more: what they still write lands in pages that
  // this process does not look at, or is refused. It keeps its bytes and its addresses, and others
  // may open it anew. Nobody of this process writes there meanwhile; one thread at a time.
  Status cut_off(const InDriver& in_driver);

 private:
  RemoteMemory(RemoteMemoryContext context, std::shared_ptr<SharedSegment> segment, Region region);
  // The keys by the sessions that it was offered to: a session is not used because of it.
  using Offered =
      std::map<std::weak_ptr<Session>, std::string, std::owner_less<std::weak_ptr<Session>>>;
  // Whoever has it open with these keys is told to close it.
  void tell_to_forget(const Offered& offered) const;

  const RemoteMemoryContext context_;
  std::byte* const data_;
  const uint64_t bytes_;
  const Others others_;
  const std::shared_ptr<const void> in_use_ = std::make_shared<int>();  // Local's: counts them
  std::atomic<RegionId> region_;  // kNoRegion: it is being cut off, or could not be made anew
  std::mutex mutex_;              // what follows
  std::shared_ptr<SharedSegment> segment_;
  Offered offered_;
};

using RemoteMemoryPtr = std::shared_ptr<RemoteMemory>;

}  // namespace rdmacoll
