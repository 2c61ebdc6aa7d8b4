// Message: what two processes of a session say to each other: a request, the reply to one, or that
// they use the session no more. The text is the caller's matter. It comes from outside, so reading
// trusts nothing.
// Floor: engine/session. Thread: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/engine/session/session_memory.h"

namespace rdmacoll {

struct MessageHead {
  enum class Kind : uint8_t {
    Request,
    Reply,
    Close,  // the sender does not use the session; of two who have said so it ends
    Keep,   // the sender uses it, though the other does not
  };
  uint32_t number = 0;  // of the request, by who makes it
  Kind kind = Kind::Request;
  uint8_t code = 0;    // of a reply: a StatusCode; if it is not Ok, the text says why
  uint16_t bytes = 0;  // of the text behind this
};
static_assert(sizeof(MessageHead) == 8);

inline constexpr size_t kMessageTextMax = kMessageBytesMax - sizeof(MessageHead);

// Into memory of kMessageBytesMax; how many bytes it takes. The text is no longer than it may be.
inline uint64_t write_message(std::byte* to, MessageHead head, std::string_view text) {
  head.bytes = static_cast<uint16_t>(text.size());
  std::memcpy(to, &head, sizeof(head));
  std::memcpy(to + sizeof(head), text.data(), text.size());
  return sizeof(head) + text.size();
}

struct ReadMessage {
  MessageHead head;
  std::string text;
};

// nullopt: it makes no sense.
inline std::optional<ReadMessage> read_message(std::span<const std::byte> bytes) {
  ReadMessage message;
  if (bytes.size() < sizeof(message.head)) return std::nullopt;
  std::memcpy(&message.head, bytes.data(), sizeof(message.head));
  const size_t left = bytes.size() - sizeof(message.head);
  const bool is_known = message.head.kind <= MessageHead::Kind::Keep &&
                        message.head.code <= static_cast<uint8_t>(StatusCode::System);
  if (!is_known || message.head.bytes != left) return std::nullopt;
  message.text.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof(message.head), left);
  return message;
}

}  // namespace rdmacoll
