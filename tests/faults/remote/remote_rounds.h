// What the processes of a case of remote memory expose, and for how long they wait.
// Floor: tests. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdmacoll::faults {

inline constexpr uint64_t kRemoteBytes = 4u << 20;
inline constexpr uint64_t kModelBytes = 1u << 20;
// Deadlines: far off, but where it takes one to notice.
inline constexpr int64_t kFarMs = 20'000;
inline constexpr int64_t kNearMs = 500;

constexpr std::byte value_of(int rank) { return static_cast<std::byte>(0x10 + rank); }

}  // namespace rdmacoll::faults
