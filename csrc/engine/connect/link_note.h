// LinkNote: what a rank tells another with the offer of its block: which group it means, who it is,
// and where in its memory the other's room is. It comes from outside, so reading trusts nothing.
// Floor: engine/connect. Thread: values.
#pragma once

#include <cstdint>

#include "csrc/base/limits.h"

namespace rdmacoll {

// In the place of a group's token: the note is about a session (engine/session).
inline constexpr uint32_t kSessionToken = 0;

struct LinkNote {
  uint32_t token = 0;  // of the group in the process that this goes to (GroupRecord)
  uint16_t rank = 0;   // whose offer it is
  uint16_t room = 0;   // of the one that it goes to, counted through the slabs of the offering rank

  static_assert(kMaxWorld <= UINT16_MAX);
  uint64_t pack() const { return uint64_t{token} << 32 | uint64_t{rank} << 16 | room; }
  static LinkNote unpack(uint64_t note) {
    return {static_cast<uint32_t>(note >> 32), static_cast<uint16_t>(note >> 16),
            static_cast<uint16_t>(note)};
  }
};

}  // namespace rdmacoll
