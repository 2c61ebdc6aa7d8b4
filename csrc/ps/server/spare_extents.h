// SpareExtents: memory of tables that were dropped, for those that come: its pages are there
// already, which takes three times as long as to write to them. Where tables come and go, as parts
// of files do, that is most of the time. Floor: ps/server. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

class SpareExtents {
 public:
  // It has no more bytes than that, which count for no table.
  explicit SpareExtents(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Of so many bytes, which may be any. nullptr: there is none.
  RemoteMemoryPtr take(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(bytes);
    if (found == all_.end()) return nullptr;
    bytes_ -= bytes;
    return all_.extract(found).mapped();
  }
  // One that nobody reads any more, and nobody finds.
  void keep(RemoteMemoryPtr memory) {
    const std::lock_guard lock(mutex_);
    const uint64_t bytes = memory->bytes();
    if (bytes > most_bytes_ - bytes_) return;
    bytes_ += bytes;
    all_.emplace(bytes, std::move(memory));
  }

 private:
  const uint64_t most_bytes_;
  std::mutex mutex_;  // what follows
  uint64_t bytes_ = 0;
  std::multimap<uint64_t, RemoteMemoryPtr> all_;
};

}  // namespace rdmacoll::ps
