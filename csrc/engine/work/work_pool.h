// WorkPool: makes works in the memory of those that nobody holds any more, so that the steady state
// allocates nothing. Works may outlive their pool.
// Floor: engine/work. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "csrc/base/check.h"
#include "csrc/engine/work/spares.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll {

class WorkPool {
 public:
  WorkPool() = default;
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;
  ~WorkPool() { memory_->leave(); }

  WorkPtr make() { return std::allocate_shared<Work>(Allocator<Work>(memory_)); }

 private:
  // Pieces of one size: a work with what a shared_ptr needs beside it. It deletes itself when the
  // pool and all pieces have left it. The count is of pieces, as shared_ptr copies its allocator
  // several times for each.
  class Memory {
   public:
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    void* take(size_t bytes) {
      if (piece_bytes_.load(std::memory_order_relaxed) == 0) piece_bytes_.store(bytes);
      RDMACOLL_CHECK(piece_bytes_.load(std::memory_order_relaxed) == bytes);
      void* piece = spares_.take();
      if (piece == nullptr) piece = ::operator new(bytes);
      users_.fetch_add(1, std::memory_order_relaxed);
      return piece;
    }
    void give(void* piece) {
      spares_.keep(piece);
      leave();
    }
    void leave() {
      if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

   private:
    ~Memory() {
      while (void* piece = spares_.take()) ::operator delete(piece);
    }

    Spares<void> spares_;
    std::atomic<size_t> piece_bytes_{0};
    std::atomic<uint64_t> users_{1};  // the pool, and every piece that is out
  };

  template <typename T>
  struct Allocator {
    using value_type = T;
    Memory* memory;

    explicit Allocator(Memory* from) : memory(from) {}
    template <typename U>
    Allocator(const Allocator<U>& other) : memory(other.memory) {}
    T* allocate(size_t count) { return static_cast<T*>(memory->take(count * sizeof(T))); }
    void deallocate(T* piece, size_t) { memory->give(piece); }
    template <typename U>
    bool operator==(const Allocator<U>& other) const {
      return memory == other.memory;
    }
  };

  Memory* const memory_ = new Memory;
};

}  // namespace rdmacoll
