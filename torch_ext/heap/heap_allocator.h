// HeapAllocator: torch's tensors in the engine's heap: those asked for one by one, those that are
// moved there, and all that torch's CPU allocator makes while it is told to serve from it.
// Floor: torch_ext/heap. Thread: any. In a forked child all of it is ordinary memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rdmacoll::torch_ext {

// What finds no room in the heap is ordinary memory: the heap counts it, and warns once.
class HeapAllocator final : public c10::Allocator {
 public:
  static HeapAllocator& instance();

  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

at::Tensor empty_in_heap(at::IntArrayRef sizes, at::ScalarType dtype);

// Moves the tensor's storage, and so all its views, into the heap. False: there is no room.
bool place_in_heap(const at::Tensor& tensor);

bool is_in_heap(const at::Tensor& tensor);

// From now on torch's CPU allocator takes what has at least so many bytes from the heap; 0: nothing
// any more. Returns what held before. It holds for the whole process.
uint64_t serve_from_heap(uint64_t least_bytes);

// Serves allocations of exactly these sizes, too, in addition to serve_from_heap(). Only the first
// kServedSizes of them count.
inline constexpr size_t kServedSizes = 64;
void serve_sizes_from_heap(const std::vector<uint64_t>& sizes_bytes);

std::map<std::string, uint64_t> heap_stats();

}  // namespace rdmacoll::torch_ext
