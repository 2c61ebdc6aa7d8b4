// InHeap: an allocator of standard containers that takes memory from the heap of the rank at hand,
// and ordinary memory where there is none or it is full.
// Floor: tests. Thread: the rank's own; containers keep the heap they were made with.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "csrc/engine/channel/heap.h"

namespace rdmacoll {

// Of the rank that this thread is, or speaks for; nullptr: what it makes is ordinary memory.
inline thread_local Heap* heap_of_this_rank = nullptr;

template <typename T>
struct InHeap {
  using value_type = T;
  Heap* heap = heap_of_this_rank;

  T* allocate(size_t count) {
    std::byte* data = heap != nullptr ? heap->allocate(count * sizeof(T)) : nullptr;
    return data != nullptr ? reinterpret_cast<T*>(data) : std::allocator<T>().allocate(count);
  }
  void deallocate(T* data, size_t count) {
    auto* bytes = reinterpret_cast<std::byte*>(data);
    if (heap == nullptr || !heap->holds(bytes, count)) {
      return std::allocator<T>().deallocate(data, count);
    }
    heap->free(bytes);
  }
  bool operator==(const InHeap& other) const { return heap == other.heap; }
};

template <typename T>
using HeapVector = std::vector<T, InHeap<T>>;

}  // namespace rdmacoll
