// Attention: what comes for this process over transports that move bytes only while somebody polls
// them, and how long it is left to whoever drives. Floor: engine/drive. Thread: is_needed() and
// wake() any; sleep() one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "csrc/engine/connect/transports.h"
#include "csrc/engine/drive/driver_role.h"
#include "csrc/memory/wake_fd.h"

namespace rdmacoll {

// How long the attendant leaves what has come to others: the longer, the longer they drive, so that
// it does not wake for every message beside them. One that drives alone leaves it to nobody.
class Patience {
 public:
  // turn: how often the role was taken so far.
  bool is_due(uint64_t turn) const { return turn != own_turn_; }
  int ms() const { return ms_; }
  void note(bool others_drive) { ms_ = others_drive ? std::min(2 * ms_, kMostMs) : kLeastMs; }
  void note_own(uint64_t turn) { own_turn_ = turn; }

 private:
  static constexpr int kLeastMs = 1;
  static constexpr int kMostMs = 4;
  int ms_ = kLeastMs;
  std::optional<uint64_t> own_turn_;
};

class Attention {
 public:
  // The descriptor ends a sleep. All else outlives this.
  Attention(WakeFd wake_fd, const Transports& transports, const DriverRole& role)
      : wake_fd_(std::move(wake_fd)), transports_(transports), role_(role) {}

  // A transport is in use that asks for it; then it is needed for good.
  bool is_needed() const;
  enum class End : uint8_t {
    Woken,    // by wake(), or by a signal
    Theirs,   // something has come, and others drive
    Nobodys,  // something has come, and nobody takes it
  };
  // Sleeps until something has come, or until wake().
  End sleep(Patience& patience) const;
  // Also of the next sleep, if nobody sleeps.
  void wake() const { wake_fd_.ring(); }

 private:
  bool somebody_is_at_it() const { return role_.is_taken() || role_.is_wanted(); }

  const WakeFd wake_fd_;
  const Transports& transports_;
  const DriverRole& role_;
};

}  // namespace rdmacoll
