// How large a heap is. Floor: engine/channel.
#include "csrc/engine/channel/heap_size.h"

#include <algorithm>

namespace rdmacoll {
namespace {

constexpr uint64_t kNone = MemoryLimits::kNone;

// A smaller heap holds too little to be of use.
constexpr uint64_t kSmallestDefault = 32ull << 20;
constexpr uint64_t kHeapGrainBytes = 4096;

std::string ulimit_leaves(const MemoryLimits& limits) {
  return "`ulimit -v` (RLIMIT_AS) allows " + std::to_string(limits.address_bytes) +
         " bytes of address space, of which " + std::to_string(limits.unmapped_bytes()) +
         " are left";
}

}  // namespace

Result<HeapSize> choose_heap_size(const Config& config, const MemoryLimits& limits) {
  const uint64_t left = limits.unmapped_bytes();
  if (config.heap_bytes >= 0) {
    const auto bytes = static_cast<uint64_t>(config.heap_bytes);
    if (bytes <= left) return HeapSize{bytes, ""};
    return Status(StatusCode::InvalidArgument,
                  "RDMACOLL_HEAP_BYTES=" + std::to_string(bytes) +
                      " does not fit: " + ulimit_leaves(limits) +
                      "; lower RDMACOLL_HEAP_BYTES (0: no heap), or raise the limit");
  }
  const uint64_t usual = std::min(limits.physical_bytes, limits.cgroup_bytes) / 2;
  if (left == kNone) return HeapSize{usual, ""};
  // A quarter is for the heaps of all ranks of this host, as each rank maps all of them.
  const auto ranks = static_cast<uint64_t>(std::max<int64_t>(1, config.place.local_world));
  const uint64_t share = left / 4 / ranks / kHeapGrainBytes * kHeapGrainBytes;
  if (share >= usual) return HeapSize{usual, ""};
  const std::string remedy =
      "; raise it (ulimit -v unlimited), or set RDMACOLL_HEAP_BYTES to what is wanted (0: no heap)";
  if (share < kSmallestDefault) {
    return HeapSize{0, "there is no heap, so operations copy what they send: " +
                           ulimit_leaves(limits) + remedy};
  }
  return HeapSize{share, "the heap has " + std::to_string(share) + " bytes and not " +
                             std::to_string(usual) + ": " + ulimit_leaves(limits) + remedy};
}

uint64_t largest_peer_heap(const Config& config, const MemoryLimits& limits) {
  const uint64_t left = limits.unmapped_bytes();
  if (left == kNone) return kNone;
  if (config.place.local_world < 2) return 0;
  return left / 2 / static_cast<uint64_t>(config.place.local_world - 1);
}

}  // namespace rdmacoll
