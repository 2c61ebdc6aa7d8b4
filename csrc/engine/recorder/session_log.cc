// SessionLog. Floor: engine/recorder. Thread: see session_log.h.
#include "csrc/engine/recorder/session_log.h"

#include <algorithm>

namespace rdmacoll {

SessionLog SessionLog::of(FlightSession session) const {
  SessionLog log;
  log.clock_ = clock_;
  log.recorder_ = recorder_;
  log.begin(std::move(session));
  return log;
}

void SessionLog::begin(FlightSession session) {
  if (recorder_ != nullptr) session_ = recorder_->add_session(std::move(session));
}

void SessionLog::renamed(const std::string& with) {
  if (session_ != 0) recorder_->session_renamed(session_, with);
}

FlightWaitGuard SessionLog::wait(FlightKind kind, const std::string& with) const {
  if (recorder_ == nullptr) return {};
  return FlightWaitGuard(recorder_, {kind, with, clock_->now_ns()});
}

SessionRecord SessionLog::add(FlightKind kind, uint64_t bytes, int64_t asked_ns) {
  if (session_ == 0 || kind == FlightKind::None) return {};
  if (asked_ns == 0) asked_ns = clock_->now_ns();
  last_ns_ = std::max(last_ns_, asked_ns);
  return {.slot = recorder_->ring().add({.sequence = ++sequence_,
                                         .group = session_,
                                         .kind = static_cast<uint8_t>(kind),
                                         .bytes = bytes,
                                         .queued_ns = asked_ns})};
}

void SessionLog::start(SessionRecord& record) {
  if (record.slot == FlightRing::kNone || record.has_begun) return;
  last_ns_ = clock_->now_ns();
  start_with_last(record);
}

void SessionLog::start_with_last(SessionRecord& record) {
  if (record.slot == FlightRing::kNone || std::exchange(record.has_begun, true)) return;
  recorder_->ring().start(record.slot, last_ns_, -1);
}

void SessionLog::end(const SessionRecord& record, const Status& how) {
  if (record.slot == FlightRing::kNone) return;
  last_ns_ = clock_->now_ns();
  recorder_->ring().end(record.slot, last_ns_, how.ok());
}

void SessionLog::ended(const Status& why) {
  if (session_ != 0) recorder_->session_ended(session_, why.message());
}

}  // namespace rdmacoll
