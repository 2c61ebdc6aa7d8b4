// Statement: what is before the two buffers of an exposure with versions. Version v lies in buffer
// v % 2. A writer says that it begins v before it touches the buffer, and that v is complete after
// it has. So a reader that has read version v whole, and sees afterwards that v + 2 was not begun,
// has read what the writer wrote and nothing else, in whatever order the bytes came to it. It costs
// the double memory; nobody waits for anybody, and a reader that is a whole version late reads
// again. Floor: remote. Thread: one writer, any readers.
//
// Words, as both are read by other processes: eight bytes that are stored as one come as one
// (transport.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "csrc/base/limits.h"

namespace rdmacoll {

struct alignas(kLineBytes) Statement {
  std::atomic<uint64_t> complete{0};  // the newest whole version; 0: none
  std::atomic<uint64_t> begun{0};
};
static_assert(sizeof(Statement) == kLineBytes && std::atomic<uint64_t>::is_always_lock_free);

inline constexpr uint64_t kStatementBytes = 4096;  // up to where the first buffer begins
inline constexpr uint64_t kBufferAlignment = 4096;

constexpr uint64_t buffer_stride(uint64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}
constexpr uint64_t buffer_offset(uint64_t version, uint64_t bytes) {
  return kStatementBytes + version % 2 * buffer_stride(bytes);
}
constexpr uint64_t versions_bytes(uint64_t bytes) {
  return kStatementBytes + 2 * buffer_stride(bytes);
}

}  // namespace rdmacoll
