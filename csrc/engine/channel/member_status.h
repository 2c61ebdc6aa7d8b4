// MemberStatus: a rank's last message to its group, in a line of every other member's block (the
// status line): that it has left, or that it has given the group up, and why. The line is written
// by another process, so reading it trusts nothing. Floor: engine/channel. Thread: values; any
// thread may read a line.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "csrc/engine/channel/port.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// What the end of a rank asks of the others: to fail only where they need it, or at once.
enum class ExitReason : uint16_t { Left = 1, Failed = 2 };

struct MemberStatus {
  ExitReason reason = ExitReason::Failed;
  std::optional<uint32_t> lost{};  // the rank whose end was the first cause
  std::string cause{};             // in few words; what is longer is cut off

  // Writes it, once, into the line at this offset in the peer's block. All that this rank wrote
  // there before lands before it.
  Posted publish(const Link& peer, uint64_t line) const;
  // Whether the line holds a status. What its writer wrote before it is here, then.
  static bool is_in(const std::byte* line) {
    return reinterpret_cast<const Line*>(line)->counter.load(std::memory_order_acquire) != 0;
  }
  // nullopt: the line holds none.
  static std::optional<MemberStatus> read(const std::byte* line, uint32_t world);
};

}  // namespace rdmacoll
