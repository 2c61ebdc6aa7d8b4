// HeapAllocator. Floor: torch_ext/heap. Thread: any.
#include "torch_ext/heap/heap_allocator.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "torch_ext/base/errors.h"
#include "torch_ext/join/process.h"

namespace rdmacoll::torch_ext {
namespace {

std::atomic<uint64_t> served_from_bytes{0};
// What torch's CPU allocator was, once it is replaced; until then its first one.
std::atomic<c10::Allocator*> ordinary{c10::GetDefaultCPUAllocator()};
std::array<std::atomic<uint64_t>, kServedSizes> served_sizes{};  // 0: the list ends before it

void report(void* data, int64_t bytes) {
  if (!c10::memoryProfilingEnabled()) [[likely]]
    return;
  const HeapStats stats = Process::instance().heap_stats();
  c10::reportMemoryUsageToProfiler(data, bytes, stats.allocated_bytes, stats.extent_bytes,
                                   c10::Device(c10::DeviceType::CPU));
}

// One for all memory, as the raw interface of torch's allocators wants it.
void release(void* data) {
  if (data == nullptr) return;
  Heap* heap = Process::instance().heap_of(data);
  if (heap == nullptr) return ordinary.load()->raw_deallocate(data);
  const uint64_t bytes = heap->free(static_cast<std::byte*>(data));
  report(data, -static_cast<int64_t>(bytes));
}

// No bytes: there is no room.
c10::DataPtr take(size_t bytes) {
  Heap* heap = Process::instance().heap();
  std::byte* data = heap == nullptr || bytes == 0 ? nullptr : heap->allocate(bytes);
  if (data == nullptr) return {};
  report(data, static_cast<int64_t>(bytes));
  return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
}

bool is_served(size_t bytes) {
  const uint64_t least = served_from_bytes.load(std::memory_order_relaxed);
  if (least != 0 && bytes >= least) return true;
  for (const std::atomic<uint64_t>& served : served_sizes) {
    const uint64_t size = served.load(std::memory_order_relaxed);
    if (size == 0) return false;
    if (size == bytes) return true;
  }
  return false;
}

// In the place of torch's CPU allocator.
class Switch final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (is_served(bytes)) return HeapAllocator::instance().allocate(bytes);
    return ordinary.load(std::memory_order_relaxed)->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// Once, and for good: memory that it handed out may be freed at any time.
void install_switch() {
  static const bool installed = [] {
    ordinary.store(c10::GetCPUAllocator());
    auto* ours = new Switch;
    c10::SetCPUAllocator(ours, UINT8_MAX);
    return c10::GetCPUAllocator() == ours;
  }();
  if (!installed) {
    throw_status(Status(StatusCode::Unsupported,
                        "torch's CPU allocator was replaced with the highest priority by another "
                        "library, so rdmacoll cannot serve from its heap; use rdmacoll.empty() or "
                        "rdmacoll.place_() instead"));
  }
}

}  // namespace

// Never destroyed, as tensors live on after the last static destructor.
HeapAllocator& HeapAllocator::instance() {
  static HeapAllocator& allocator = *new HeapAllocator;
  return allocator;
}

c10::DataPtr HeapAllocator::allocate(size_t bytes) {
  c10::DataPtr data = take(bytes);
  return data ? std::move(data) : ordinary.load()->allocate(bytes);
}

c10::DeleterFnPtr HeapAllocator::raw_deleter() const { return &release; }

at::Tensor empty_in_heap(at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::Tensor(at::detail::empty_generic(sizes, &HeapAllocator::instance(),
                                              c10::DispatchKeySet(c10::DispatchKey::CPU), dtype,
                                              std::nullopt));
}

bool is_in_heap(const at::Tensor& tensor) {
  return tensor.has_storage() && Process::instance().heap_of(tensor.storage().data()) != nullptr;
}

bool place_in_heap(const at::Tensor& tensor) {
  const at::Storage& storage = tensor.storage();
  if (storage.nbytes() == 0 || is_in_heap(tensor)) return true;
  c10::DataPtr moved = take(storage.nbytes());
  if (!moved) return false;
  std::memcpy(moved.get(), storage.data(), storage.nbytes());
  storage.set_data_ptr_noswap(std::move(moved));
  return true;
}

uint64_t serve_from_heap(uint64_t least_bytes) {
  install_switch();
  return served_from_bytes.exchange(least_bytes);
}

void serve_sizes_from_heap(const std::vector<uint64_t>& sizes_bytes) {
  install_switch();
  for (size_t i = 0; i < kServedSizes; ++i) {
    served_sizes[i].store(i < sizes_bytes.size() ? sizes_bytes[i] : 0, std::memory_order_relaxed);
  }
}

std::map<std::string, uint64_t> heap_stats() {
  const HeapStats stats = Process::instance().heap_stats();
  return {{"capacity_bytes", stats.capacity_bytes},   {"reserved_bytes", stats.extent_bytes},
          {"allocated_bytes", stats.allocated_bytes}, {"peak_allocated_bytes", stats.peak_bytes},
          {"allocations", stats.allocations},         {"refused", stats.refused}};
}

}  // namespace rdmacoll::torch_ext
