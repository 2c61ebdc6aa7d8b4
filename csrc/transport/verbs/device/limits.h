// Depths of the queues and how they hang together. Floor: transport/verbs/device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/config.h"
#include "csrc/base/limits.h"
#include "csrc/transport/verbs/settings/settings.h"

namespace rdmacoll::verbs {

inline constexpr uint32_t kMaxStripes = 8;  // queue pairs per peer

// Work requests of one queue pair that are not known to be done. A completion is asked for at least
// every quarter of it, so that places come back without one completion per request.
inline constexpr uint32_t kSendDepth = 256;
inline constexpr uint32_t kSignalEvery = kSendDepth / 4;
// Requests handed to the device by one call.
inline constexpr uint32_t kChainMax = 16;

// Signals to one peer that it has not yet made room for again: as many receives as it has posted,
// so that a message never finds the receiver not ready. Receives are posted again by the batch.
inline constexpr uint32_t kReceiveDepth = 256;
inline constexpr uint32_t kReceiveBatch = 32;
// A peer that hears nothing else from here is told of the room after half of it.
inline constexpr uint32_t kTellEvery = kReceiveDepth / 2;

// Puts of at least this size go over all queue pairs of the peer.
inline constexpr uint64_t kStripeBytes = 64 * 1024;
inline constexpr uint64_t kStripeAlignment = 4096;  // where a put is cut: pages, and any MTU

inline constexpr uint32_t kInlineBytesWanted = 128;  // of a work request: lines and small puts

inline constexpr int kCompletionsPerPoll = 32;

static_assert(kMaxStripes == VerbsConfig::kMaxQueuePairs);
static_assert(kSendDepth % kSignalEvery == 0 && kChainMax <= kSignalEvery);
// A signal and its marks must find room in an idle queue whose last requests asked for nothing.
static_assert(kSignalEvery + kChainMax < kSendDepth);
static_assert(kReceiveDepth % kReceiveBatch == 0 && kTellEvery % kReceiveBatch == 0);

}  // namespace rdmacoll::verbs
