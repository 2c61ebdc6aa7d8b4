// ShardPlace: where something lies in the memory of its server, for who reads it there: a shard, or
// what there is of rows. It may come from outside. Floor: ps/table. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rdmacoll::ps {

// A server exposes the memory of its shards in extents. Each of a table has twice as many bytes as
// the one before, up to the most. Offsets in one fit into 32 bits.
inline constexpr uint64_t kFirstExtentBytes = 1u << 20;
inline constexpr uint64_t kMostExtentBytes = 64u << 20;

// A worker gives a read there up after so long: it is of a server that is lost.
inline constexpr int64_t kLongestReadMs = 10'000;

struct ShardPlace {
  uint32_t extent = 0;  // of the server's; 0: nobody can read it there
  uint32_t offset = 0;  // in that, in bytes
};

// In one word. 0: nobody can read it there.
inline uint64_t packed(const ShardPlace& place) {
  return uint64_t{place.extent} << 32 | place.offset;
}
inline ShardPlace unpacked(uint64_t place) {
  return {static_cast<uint32_t>(place >> 32), static_cast<uint32_t>(place)};
}

// Under which name a server exposes an extent.
inline std::string extent_name(uint32_t server, uint32_t extent) {
  return "rdmacoll.ps.shards." + std::to_string(server) + "." + std::to_string(extent);
}

// Memory for a shard.
struct ShardMemoryPiece {
  std::byte* data = nullptr;
  ShardPlace place{};
  bool is_zeroed = true;
};

}  // namespace rdmacoll::ps
