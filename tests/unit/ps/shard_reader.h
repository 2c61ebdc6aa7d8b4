// ShardReader: reads a shard as csrc/remote/snapshot.h does, one word at a time, so that a
// scheduler can have its server write between any two. Floor: tests. Thread: one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "csrc/ps/client/surroundings.h"
#include "csrc/remote/statement.h"

namespace rdmacoll::ps {

class ShardReader final : public ShardRead {
 public:
  // memory: of the shard's versions, longer there than this.
  ShardReader(const std::byte* memory, const ShardRange& range) : memory_(memory), range_(range) {}

  std::optional<bool> outcome() const override { return outcome_; }
  void fail() { outcome_ = false; }
  void go_on() {
    const auto& statement = *reinterpret_cast<const Statement*>(memory_);
    if (version_ == 0) {
      version_ = statement.complete.load();
      read_ = 0;
      if (version_ == 0) outcome_ = false;
    } else if (read_ < range_.into.size()) {
      const uint64_t from = buffer_offset(version_, range_.version_bytes) + range_.first_byte;
      std::memcpy(range_.into.data() + read_, memory_ + from + read_, sizeof(float));
      read_ += sizeof(float);
    } else if (statement.begun.load() < version_ + 2) {
      outcome_ = true;
    } else {
      version_ = 0;
    }
  }

 private:
  const std::byte* const memory_;
  const ShardRange range_;
  uint64_t version_ = 0;  // 0: not known yet
  uint64_t read_ = 0;     // bytes
  std::optional<bool> outcome_{};
};

}  // namespace rdmacoll::ps
