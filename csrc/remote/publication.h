// Publication: writes the versions of an exposure that has some. Floor: remote. Thread: one at a
// time.
#pragma once

#include <cstdint>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/remote/remote_memory.h"
#include "csrc/remote/statement.h"

namespace rdmacoll {

class Publication {
 public:
  // So many bytes a version, at this offset of the memory, which is zeroed.
  Publication(RemoteMemoryPtr memory, uint64_t offset, uint64_t bytes)
      : memory_(std::move(memory)), offset_(offset), bytes_(bytes) {
    RDMACOLL_CHECK(offset % kLineBytes == 0);
    RDMACOLL_CHECK(memory_->holds(offset, versions_bytes(bytes)));
  }

  const RemoteMemoryPtr& memory() const { return memory_; }
  uint64_t bytes() const { return bytes_; }
  // The newest whole version; 0: none.
  uint64_t version() const { return version_; }
  // Where the next version is to be written; until complete() nobody reads it.
  std::byte* begin() {
    statement().begun.store(version_ + 1, std::memory_order_relaxed);
    // Nothing of the version may be seen before that.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return memory_->data() + offset_ + buffer_offset(version_ + 1, bytes_);
  }
  // It is written.
  uint64_t complete() {
    statement().complete.store(++version_, std::memory_order_release);
    return version_;
  }

 private:
  Statement& statement() const { return *reinterpret_cast<Statement*>(memory_->data() + offset_); }

  const RemoteMemoryPtr memory_;
  const uint64_t offset_;
  const uint64_t bytes_;
  uint64_t version_ = 0;
};

}  // namespace rdmacoll
