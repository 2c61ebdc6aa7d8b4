// RemoteMemory: memory of this process that others read, or read and write, as far as it is exposed
// to them. It is a segment of its own, so that its rights are its own, too.
// Floor: remote. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // Its region; kNoRegion: they are in none.
  RegionId region_of(const void* data, uint64_t bytes) const;
  uint64_t bytes() const;
  // The other process of the session has ended.
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

  const Region& region() const { return region_; }
  std::byte* data() const { return region_.base; }
  uint64_t bytes() const { return region_.bytes; }
  Others others() const { return segment_->others(); }
  uint64_t offset_of(const void* data) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(data) - region_.base);
  }
  // With what the other process of a session opens it; offers it to it, once.
  Result<std::string> offer(const SessionPtr& session);
  // That has ended.
  void forget(const SessionPtr& session);

 private:
  RemoteMemory(RemoteMemoryContext context, std::shared_ptr<SharedSegment> segment, Region region);

  const RemoteMemoryContext context_;
  const std::shared_ptr<SharedSegment> segment_;
  const Region region_;
  std::mutex mutex_;
  std::map<SessionPtr, std::string> offered_;  // and the key
};

using RemoteMemoryPtr = std::shared_ptr<RemoteMemory>;

}  // namespace rdmacoll
