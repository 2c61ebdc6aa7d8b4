// SessionLog: a session's hand in the flight recorder: what it asks the other process, and what it
// reads and writes there. Floor: engine/recorder. Thread: the driver; what is said to be any, any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/recorder/flight_recorder.h"

namespace rdmacoll {

// A record of what a session is at.
struct SessionRecord {
  uint32_t slot = FlightRing::kNone;
  bool has_begun = false;
};

// Notes nothing where there is no recorder.
class SessionLog {
 public:
  SessionLog() = default;
  SessionLog(const Clock& clock, std::shared_ptr<FlightRecorder> recorder)
      : clock_(&clock), recorder_(std::move(recorder)) {}

  // --- any thread -----------------------------------------------------------------------------
  // That of a session of its own, in the same recorder.
  SessionLog of(FlightSession session) const;
  void renamed(const std::string& with);
  // A wait for the other that nothing of the ring stands for, until the guard goes.
  FlightWaitGuard wait(FlightKind kind, const std::string& with) const;

  // --- the driver -----------------------------------------------------------------------------
  // Before all else of these.
  void begin(FlightSession session);
  // asked_ns: when it was asked for; 0: now.
  SessionRecord add(FlightKind kind, uint64_t bytes, int64_t asked_ns = 0);
  // Once or more often.
  void start(SessionRecord& record);
  // It begins at once, or with the end of another: nobody need ask the clock.
  void start_with_last(SessionRecord& record);
  void end(const SessionRecord& record, const Status& how);
  // Ok: nobody used it any more. Only the first call counts.
  void ended(const Status& why);

 private:
  const Clock* clock_ = nullptr;
  std::shared_ptr<FlightRecorder> recorder_;
  uint32_t session_ = 0;  // 0: none
  uint64_t sequence_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace rdmacoll
