// SessionMemory: what the memory holds that a process has for another one of a session: where that
// writes its messages, and where it says that its writes have come. The same for all sessions, so
// that both know the offsets in each other's memory.
// Floor: engine/session. Thread: values.
#pragma once

#include <cstdint>

#include "csrc/base/limits.h"
#include "csrc/engine/channel/layout.h"
#include "csrc/engine/channel/link.h"

namespace rdmacoll {

// Behind the channels of groups. All of a session goes over one, so that what is said comes behind
// what was written before.
inline constexpr uint8_t kSessionChannel = kChannels;

inline constexpr uint64_t kMessageBytesMax = 2048;
inline constexpr ChannelPlace kMessages{.depth = 16, .slot_bytes = kMessageBytesMax};

// A line for each opened region that the other notifies this process of.
inline constexpr uint32_t kNotificationLines = 128;
// Behind them as many in which the other says that it has taken memory back. It may say so when the
// memory is closed here, so that what is in one of them may be of an earlier use: lines in which
// notifications are counted are none of these.
inline constexpr uint32_t kLines = 2 * kNotificationLines;
constexpr uint64_t notification_offset(uint32_t line) {
  return (kMessages.depth + 1ull + line) * kLineBytes;
}

// Lines into which this process reads words of the other's memory.
inline constexpr uint32_t kLandingLines = 16;
constexpr uint64_t landing_offset(uint32_t line) { return notification_offset(kLines + line); }

inline constexpr uint64_t kSessionSlots = 5 * 4096;
inline constexpr uint64_t kSessionBytes =
    kSessionSlots + 2ull * kMessages.depth * kMessages.slot_bytes;  // and where it sends from
static_assert(landing_offset(kLandingLines) <= kSessionSlots);

// Behind that a process may have more for itself (staging.h).

inline constexpr PeerRoom kSessionRoom{.lines = 0, .slots = kSessionSlots};

}  // namespace rdmacoll
