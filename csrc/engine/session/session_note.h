// SessionNote: what a process tells another by a note (transport.h) about their session: here is
// the memory of mine that you write to; or look, I have sent a message. It comes from outside, so
// reading trusts nothing. Floor: engine/session. Thread: values.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/engine/connect/link_note.h"

namespace rdmacoll {

enum class SessionNote : uint16_t { Memory = 1, Message = 2 };

// No group has the token 0 (Linker::new_token).
inline uint64_t pack(SessionNote note) {
  return LinkNote{.token = kSessionToken, .rank = static_cast<uint16_t>(note), .room = 0}.pack();
}

// Of a note with that token; nullopt: it makes no sense.
inline std::optional<SessionNote> session_note_of(uint64_t packed) {
  const LinkNote note = LinkNote::unpack(packed);
  if (note.room != 0 || note.rank < 1 || note.rank > 2) return std::nullopt;
  return static_cast<SessionNote>(note.rank);
}

}  // namespace rdmacoll
