// A bare copy into memory that both map, and two flags: the least that any way takes.
// Floor: benchmarks. Thread: a process's main one.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "benchmarks/transfer/way.h"

namespace rdmacoll::bench {

class FlagWay final : public Way {
 public:
  explicit FlagWay(const Place& place)
      : place_(place),
        flags_(*reinterpret_cast<Flags*>(place.shared)),
        data_(place.shared + sizeof(Flags)) {}

  void prepare(uint64_t bytes) override {
    source_.assign(place_.sends ? bytes : 0, std::byte{1});
    bytes_ = bytes;
  }
  void send() override {
    std::memcpy(data_, source_.data(), source_.size());
    flags_.written.store(++number_, std::memory_order_release);
    await(flags_.seen);
  }
  void serve(int count) override {
    for (int i = 0; i < count; ++i) {
      ++number_;
      await(flags_.written);
      use(place_, data_, bytes_);
      flags_.seen.store(number_, std::memory_order_release);
    }
  }
  std::byte* tensor() override { return place_.sends ? source_.data() : data_; }

 private:
  struct Flags {
    alignas(64) std::atomic<uint64_t> written;
    alignas(64) std::atomic<uint64_t> seen;
  };
  void await(const std::atomic<uint64_t>& flag) const {
    for (uint64_t spins = 1; flag.load(std::memory_order_acquire) != number_; ++spins) {
      if (spins % 1024 == 0) sched_yield();
    }
  }

  const Place place_;
  Flags& flags_;
  std::byte* const data_;
  std::vector<std::byte> source_;
  uint64_t bytes_ = 0;
  uint64_t number_ = 0;
};

}  // namespace rdmacoll::bench
