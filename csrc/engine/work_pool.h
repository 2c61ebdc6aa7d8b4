// WorkPool: makes works in the memory of those that nobody holds any more, so that the steady state
// allocates nothing. Works may outlive their pool.
// Floor: engine. Thread: any.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/base/spare.h"
#include "csrc/engine/work.h"

namespace rdmacoll {

class WorkPool {
 public:
  WorkPtr make() { return std::allocate_shared<Work>(Allocator<Work>(memory_)); }

 private:
  // Pieces of one size: a work with what a shared_ptr needs beside it.
  class Memory {
   public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
      ::operator delete(newest_.take());
      for (void* piece : spare_) ::operator delete(piece);
    }
    void* take(size_t bytes) {
      if (void* piece = newest_.take()) return piece;
      const std::lock_guard lock(mutex_);
      RDMACOLL_CHECK(piece_bytes_ == 0 || piece_bytes_ == bytes);
      piece_bytes_ = bytes;
      if (spare_.empty()) return ::operator new(bytes);
      void* piece = spare_.back();
      spare_.pop_back();
      return piece;
    }
    void give(void* piece) {
      if (newest_.keep(piece)) return;
      const std::lock_guard lock(mutex_);
      spare_.push_back(piece);
    }

   private:
    Spare<void> newest_;
    std::mutex mutex_;  // the fields below
    size_t piece_bytes_ = 0;
    std::vector<void*> spare_;
  };

  template <typename T>
  struct Allocator {
    using value_type = T;
    std::shared_ptr<Memory> memory;

    explicit Allocator(std::shared_ptr<Memory> from) : memory(std::move(from)) {}
    template <typename U>
    Allocator(const Allocator<U>& other) : memory(other.memory) {}
    T* allocate(size_t count) { return static_cast<T*>(memory->take(count * sizeof(T))); }
    void deallocate(T* piece, size_t) { memory->give(piece); }
    template <typename U>
    bool operator==(const Allocator<U>& other) const {
      return memory == other.memory;
    }
  };

  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

}  // namespace rdmacoll
