// ThreadProgress: Progress with threads and a clock: the role, the driver, the background threads
// and the heartbeat. Floor: engine/drive. Thread: any.
//
// One driver at a time, for all that an endpoint drives. Whoever starts something drives one round
// if nobody else drives, so that what can leave at once has left, and spins for what may end soon;
// whoever waits drives, so that a small operation costs no hand-over; while nobody waits and
// something is in flight, or peers need it, a background thread does. Callbacks run in the thread
// that finished the work, after it has left the role (never in one that only starts an operation: a
// background thread runs them then), and may wait for works that are still in flight: as long as
// one runs, another thread can drive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/engine/drive/background.h"
#include "csrc/engine/drive/driver.h"
#include "csrc/engine/drive/driver_role.h"
#include "csrc/engine/drive/heartbeat.h"
#include "csrc/engine/drive/progress.h"

namespace rdmacoll {

class ThreadProgress final : public Progress {
 public:
  // spin_us: how long a driver polls before it begins to yield. All else outlives this.
  static Result<std::unique_ptr<ThreadProgress>> open(Transports& transports, const Clock& clock,
                                                      int64_t spin_us);

  void set_spin_us(int64_t spin_us) { driver_.set_spin_us(spin_us); }

  void add(Driven& one) override;
  void remove(Driven& one) override;
  void notify(const News& news) override;
  Status wait(std::span<Work* const> works, int64_t timeout_ms,
              const InterruptCheck& interrupt) override;

 private:
  ThreadProgress(Transports& transports, const Clock& clock, int64_t spin_us, WakeFd wake_fd,
                 WakeFd attention_fd);

  const Clock& clock_;
  DriverRole role_;
  Driver driver_;
  Background background_;
  Heartbeat heartbeat_;
};

}  // namespace rdmacoll
