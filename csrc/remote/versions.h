// Versions: writes the versions of a range that has some, behind a statement (statement.h).
// Floor: remote. Thread: one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "csrc/remote/statement.h"

namespace rdmacoll {

class Versions {
 public:
  // Of so many bytes each, in zeroed memory of versions_bytes(bytes).
  Versions(std::byte* memory, uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  uint64_t bytes() const { return bytes_; }
  // The newest whole version; 0: none.
  uint64_t version() const { return version_; }
  const std::byte* newest() const { return memory_ + buffer_offset(version_, bytes_); }
  // Where the next version is to be written; until complete() nobody reads it.
  std::byte* begin() {
    statement().begun.store(version_ + 1, std::memory_order_relaxed);
    // Nothing of the version may be seen before that.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return memory_ + buffer_offset(version_ + 1, bytes_);
  }
  // It is written.
  uint64_t complete() {
    ++version_;
    if (!is_hidden_) show();
    return version_;
  }
  // Who begins to read finds no version, until they are shown again. Who has begun may end well,
  // with what was the newest then.
  void hide() {
    is_hidden_ = true;
    statement().complete.store(0, std::memory_order_seq_cst);
  }
  void show() {
    is_hidden_ = false;
    statement().complete.store(version_, std::memory_order_release);
  }
  bool is_hidden() const { return is_hidden_; }

 private:
  Statement& statement() const { return *reinterpret_cast<Statement*>(memory_); }

  std::byte* const memory_;
  const uint64_t bytes_;
  uint64_t version_ = 0;
  bool is_hidden_ = false;
};

}  // namespace rdmacoll
