// FlightKind: what a record of the flight recorder is of, beside the collectives, which are called
// as in types.h. Floor: engine/recorder. Thread: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rdmacoll {

inline constexpr uint8_t kFlightSend = 100;
inline constexpr uint8_t kFlightRecv = 101;

// Of remote memory: what a session moves, and asks for by name; and waits for what others do.
enum class FlightKind : uint8_t {
  None = 0,  // it is not noted
  Read = 110,
  Write,
  Snapshot,
  Update,  // of a word
  Fence,
  Open,
  Close,
  Revoke,
  Forget,
  Post,
  Allocate,
  Free,
  Taken,
  Refused,
  Unpost,
  Request,  // of another name
  Meet,     // another process, for a session
  WaitNotify,
  WaitTaken,  // that a letter is taken
  Take,       // a letter
  Wait,       // for something else
};
// Behind "remote_" in a dump; of a request, what it asks for.
inline constexpr std::array<const char*, 21> kFlightKindNames{
    "read",   "write",   "snapshot", "update",      "fence",      "open",  "close",
    "revoke", "forget",  "post",     "allocate",    "free",       "taken", "refused",
    "unpost", "request", "meet",     "wait_notify", "wait_taken", "take",  "wait"};
static_assert(static_cast<size_t>(FlightKind::Wait) - static_cast<size_t>(FlightKind::Read) + 1 ==
              kFlightKindNames.size());

constexpr bool is_remote(uint8_t kind) {
  return kind >= static_cast<uint8_t>(FlightKind::Read) &&
         kind <= static_cast<uint8_t>(FlightKind::Wait);
}
constexpr const char* flight_kind_name(FlightKind kind) {
  return kFlightKindNames[static_cast<size_t>(kind) - static_cast<size_t>(FlightKind::Read)];
}
// Of a request for what is called so.
constexpr FlightKind request_kind(std::string_view name) {
  for (uint8_t i = 0; i < kFlightKindNames.size(); ++i) {
    const uint8_t kind = static_cast<uint8_t>(FlightKind::Read) + i;
    if (kind < static_cast<uint8_t>(FlightKind::Meet) && name == kFlightKindNames[i]) {
      return static_cast<FlightKind>(kind);
    }
  }
  return FlightKind::Request;
}

}  // namespace rdmacoll
