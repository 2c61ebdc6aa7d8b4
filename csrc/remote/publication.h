// Publication: the versions of an exposure that has some, which hold the memory that they are in.
// Floor: remote. Thread: one at a time.
#pragma once

#include <cstdint>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/remote/remote_memory.h"
#include "csrc/remote/versions.h"

namespace rdmacoll {

class Publication final : public Versions {
 public:
  // So many bytes a version, at this offset of the memory, which is zeroed.
  Publication(RemoteMemoryPtr memory, uint64_t offset, uint64_t bytes)
      : Versions(memory->data() + offset, bytes), memory_(std::move(memory)) {
    RDMACOLL_CHECK(offset % kLineBytes == 0);
    RDMACOLL_CHECK(memory_->holds(offset, versions_bytes(bytes)));
  }

  const RemoteMemoryPtr& memory() const { return memory_; }

 private:
  RemoteMemoryPtr memory_;
};

}  // namespace rdmacoll
