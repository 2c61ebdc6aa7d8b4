// SessionNote: what a process tells another by a note (transport.h) about their session: here is
// the memory of mine that you write to; or look, I have sent so many messages. It comes from
// outside, so reading trusts nothing. Floor: engine/session. Thread: values.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/engine/connect/link_note.h"

namespace rdmacoll {

struct SessionNote {
  enum class Kind : uint16_t { Memory = 1, Messages = 2 };
  Kind kind = Kind::Memory;
  uint16_t messages = 0;  // so far, mod 2^16; of Messages
};

// No group has the token 0 (Linker::new_token).
inline uint64_t pack(SessionNote note) {
  return LinkNote{
      .token = kSessionToken, .rank = static_cast<uint16_t>(note.kind), .room = note.messages}
      .pack();
}

// Of a note with that token; nullopt: it makes no sense.
inline std::optional<SessionNote> session_note_of(uint64_t packed) {
  const LinkNote note = LinkNote::unpack(packed);
  if (note.rank < 1 || note.rank > 2) return std::nullopt;
  const auto kind = static_cast<SessionNote::Kind>(note.rank);
  if (kind == SessionNote::Kind::Memory && note.room != 0) return std::nullopt;
  return SessionNote{kind, note.room};
}

}  // namespace rdmacoll
