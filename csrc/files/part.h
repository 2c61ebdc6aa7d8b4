// Part: bytes of a file that lie in one table of the job's servers. A table is written once, so
// that who knows a file's parts knows one version of it. Floor: files. Thread: values.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace rdmacoll::files {

// The most bytes that a part has, but for a hole.
inline constexpr uint64_t kPartBytes = 16 << 20;
inline constexpr uint32_t kHole =
    0;  // in the place of a table: nothing was written, zeros are read

struct Part {
  uint32_t table = kHole;
  uint64_t bytes = 0;
  bool operator==(const Part&) const = default;
};
using Parts = std::vector<Part>;

inline uint64_t bytes_of(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), uint64_t{0},
                         [](uint64_t sum, const Part& part) { return sum + part.bytes; });
}
// Of a table that has so many bytes: elements are floats, and the last one may be in part.
constexpr uint64_t elements_of(uint64_t bytes) {
  return (bytes + sizeof(float) - 1) / sizeof(float);
}

}  // namespace rdmacoll::files
