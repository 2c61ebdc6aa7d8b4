// Every compile-time bound of the engine, and the relations between them.
// Floor: base. What a user may change is in config.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rdmacoll {

// Ranks of one communicator, and of a plan, which names ranks and blocks in 16 bits, and has up to
// two blocks for each rank. No table has so many places: what a group needs grows with its world.
inline constexpr uint32_t kMaxWorld = 16384;

// Processes that one meets over one transport in its life, itself among them. Of a larger group it
// meets those that it talks to.
inline constexpr uint32_t kMaxPeers = 4096;

// Ranks of one island. Plans that pass data through stages may have all of them meet, and put a
// line or more for each into a stage.
inline constexpr uint32_t kMaxIsland = kMaxPeers;

// A line is what a signal writes, one cache line: a head, inline data, and a credit.
inline constexpr size_t kLineBytes = 64;
inline constexpr size_t kInlineBytes = 44;

// Messages in flight per (peer, channel). Credits come back every half depth, hence an even
// number; a message's place is found without a division, hence a power of two.
inline constexpr uint32_t kSlotDepth = 8;
inline constexpr uint32_t kStageDepth = 4;
inline constexpr uint32_t kEnvelopeDepth = 16;

// Rooms of a slab (engine/channel/layout.h): ranks that one meets before more memory is needed.
inline constexpr uint32_t kRoomsPerSlab = 64;

// Bytes of one slot: between these, the largest that keeps a block within its budget (config.h).
inline constexpr uint64_t kSlotBytesMin = 4096;
inline constexpr uint64_t kSlotBytesMax = 128 * 1024;
inline constexpr uint64_t kStageBytesMax = 512 * 1024;
inline constexpr uint64_t kStageBytesMin = 4096;

// Results of operations of so many bytes and more bypass the caches: they would evict what the
// operation itself reads.
inline constexpr uint64_t kStreamBytes = 8u << 20;

// Background threads of an endpoint: one drives, each of the others is inside a callback that waits
// for what comes next.
inline constexpr uint32_t kMaxBackgroundThreads = 16;

// Open at a time in one process.
inline constexpr size_t kMaxTransports = 4;

// How often a process shows that it runs (engine/drive/heartbeat.h).
inline constexpr int64_t kHeartbeatNs = 500'000'000;

// Of a tuning file (config.h): some thousand rows with their comments.
inline constexpr uint64_t kTuningBytesMax = 1u << 20;

// Of a file with a secret: what nobody can guess, and what is no file of another kind.
inline constexpr uint64_t kSecretBytesMin = 16;
inline constexpr uint64_t kSecretBytesMax = 4096;

// Of one process at a time. The id of a region and the number of a line in it are packed into 32
// bits; the one id more that fits there stands for no region.
inline constexpr uint32_t kMaxRegions = 4095;
inline constexpr uint32_t kMaxLinesPerRegion = 1u << 20;

static_assert(kMaxPeers <= kMaxWorld && 2 * kMaxWorld <= UINT16_MAX);
static_assert(kMaxIsland * kLineBytes <= kStageBytesMax);
static_assert(std::min({kSlotDepth, kStageDepth, kEnvelopeDepth}) >= 2);
static_assert(std::has_single_bit(kSlotDepth) && std::has_single_bit(kStageDepth) &&
              std::has_single_bit(kEnvelopeDepth));
static_assert((uint64_t{kMaxRegions} + 1) * kMaxLinesPerRegion <= uint64_t{1} << 32);
static_assert(kSlotBytesMin % kLineBytes == 0 && kSlotBytesMax % kLineBytes == 0);
static_assert(16 + kInlineBytes + 4 == kLineBytes);

}  // namespace rdmacoll
