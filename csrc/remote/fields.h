// fields: what the fields of requests and replies are called, and how numbers are in them. They
// come from outside, so reading trusts nothing. Floor: remote. Thread: values.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "csrc/engine/connect/tagged_fields.h"

namespace rdmacoll {

namespace fields {

inline constexpr const char* kDo = "do";
// Requests: what is to be done.
inline constexpr const char* kOpen = "open";    // -> all that the opener needs; "": not exposed yet
inline constexpr const char* kClose = "close";  // an opening
inline constexpr const char* kRevoke = "revoke";  // to who has opened: read and write no more
inline constexpr const char* kForget = "forget";  // to who has opened: close the memory
inline constexpr const char* kFence = "fence";    // what was written before is there
inline constexpr const char* kUpdate = "update";  // a word -> what it was before
inline constexpr const char* kPost = "post";      // a letter -> why not yet, in people's words; ""
inline constexpr const char* kAllocate = "allocate";  // memory -> as of an open; "": none is lent
inline constexpr const char* kFree = "free";          // what was allocated
inline constexpr const char* kTaken = "taken";        // a letter, to who has posted it
inline constexpr const char* kRefused = "refused";    // the same: nobody will take it
inline constexpr const char* kUnpost = "unpost";      // a letter: nobody waits for it any more

inline constexpr const char* kName = "name";
// Of an opening or an allocation, by who asks for it; of a letter, by who posts it.
inline constexpr const char* kNumber = "number";
inline constexpr const char* kKey = "key";
inline constexpr const char* kOffset = "offset";
inline constexpr const char* kBytes = "bytes";
inline constexpr const char* kWritable = "writable";
inline constexpr const char* kVersions = "versions";
inline constexpr const char* kLine = "line";      // of the owner's, in which it is notified
inline constexpr const char* kStopLine = "stop";  // of the opener's, in which it is told to stop
inline constexpr const char* kMeta = "meta";
inline constexpr const char* kOperand = "operand";    // of an update
inline constexpr const char* kExpected = "expected";  // the same; none: it adds
inline constexpr const char* kBefore = "before";
inline constexpr const char* kWho = "who";  // asks, for people

}  // namespace fields

// nullopt: there is none of this name, or it is no number.
inline std::optional<uint64_t> number_of(const TaggedFields& all, const char* name) {
  const std::string& text = field_of(all, name);
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace rdmacoll
