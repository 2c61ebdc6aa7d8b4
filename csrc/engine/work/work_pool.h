// WorkPool: makes works in the memory of those that nobody holds any more, so that the steady state
// allocates nothing. Works may outlive their pool.
// Floor: engine/work. Thread: any.
#pragma once

#include <atomic>
#include <memory>
#include <new>

#include "csrc/base/check.h"
#include "csrc/base/spares.h"
#include "csrc/engine/work/work.h"

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
      while (void* piece = spares_.take()) ::operator delete(piece);
    }
    void* take(size_t bytes) {
      if (piece_bytes_.load(std::memory_order_relaxed) == 0) piece_bytes_.store(bytes);
      RDMACOLL_CHECK(piece_bytes_.load(std::memory_order_relaxed) == bytes);
      void* piece = spares_.take();
      return piece != nullptr ? piece : ::operator new(bytes);
    }
    void give(void* piece) { spares_.keep(piece); }

   private:
    Spares<void> spares_;
    std::atomic<size_t> piece_bytes_{0};
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
