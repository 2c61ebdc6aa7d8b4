// FlightRecorder and FlightLog. Floor: engine/recorder. Thread: see flight_recorder.h.
#include "csrc/engine/recorder/flight_recorder.h"

#include <algorithm>
#include <utility>

#include "csrc/engine/recorder/flight_dump.h"

namespace rdmacoll {

FlightRecorder::FlightRecorder(const Config& config)
    : rank_(config.place.rank),
      dump_dir_(config.dump_dir),
      log_(config.log_level, rank_ < 0 ? "rdmacoll" : "rank " + std::to_string(rank_)),
      ring_(static_cast<size_t>(config.flight_records)) {}

FlightSnapshot FlightRecorder::snapshot() const {
  FlightSnapshot snapshot;
  snapshot.records = ring_.snapshot();
  snapshot.left_out = ring_.left_out();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, group] : groups_) snapshot.groups.push_back(group);
  for (const auto& [id, session] : sessions_) snapshot.sessions.push_back(session);
  for (const auto& [id, wait] : waits_) snapshot.waits.push_back(wait);
  return snapshot;
}

std::unordered_set<uint32_t> FlightRecorder::told_of() const {
  std::unordered_set<uint32_t> all;
  for (const FlightRecord& record : ring_.snapshot()) all.insert(record.group);
  return all;
}

// Groups and sessions may come and go for ever: those that nothing tells of any more are forgotten.
void FlightRecorder::forget_old(const std::unordered_set<uint32_t>& told_of) {
  std::erase_if(groups_,
                [&](const auto& old) { return old.second.left && !told_of.contains(old.first); });
  std::erase_if(sessions_, [&](const auto& old) {
    return old.second.has_ended && !told_of.contains(old.first);
  });
}

uint32_t FlightRecorder::add_group(FlightGroup group) {
  const auto still = told_of();
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_old(still);
  group.id = ++last_id_;
  return groups_.emplace(group.id, std::move(group)).first->first;
}

void FlightRecorder::group_failed(uint32_t id, const std::string& why) {
  uint32_t failure = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = groups_.find(id); found != groups_.end()) found->second.failure = why;
    failure = ++failures_;
  }
  if (dump_dir_.empty()) return;
  auto path = write_flight_dump(*this, why, "-error" + std::to_string(failure));
  log_.write(LogLevel::Warn,
             path.ok() ? "what it was doing is in " + path.value() : path.status().message());
}

void FlightRecorder::group_left(uint32_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = groups_.find(id); found != groups_.end()) found->second.left = true;
}

uint32_t FlightRecorder::add_session(FlightSession session) {
  const auto still = told_of();
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_old(still);
  session.id = ++last_id_;
  return sessions_.emplace(session.id, std::move(session)).first->first;
}

void FlightRecorder::session_renamed(uint32_t id, const std::string& with) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = sessions_.find(id); found != sessions_.end()) found->second.with = with;
}

void FlightRecorder::session_ended(uint32_t id, const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.has_ended) return;
  found->second.failure = why;
  found->second.has_ended = true;
}

uint32_t FlightRecorder::add_wait(FlightWait wait) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waits_.emplace(++last_id_, std::move(wait)).first->first;
}

void FlightRecorder::end_wait(uint32_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_.erase(id);
}

FlightLog::FlightLog(const Clock& clock, std::shared_ptr<FlightRecorder> recorder,
                     FlightGroup group)
    : clock_(&clock), recorder_(std::move(recorder)) {
  group_ = recorder_->add_group(std::move(group));
}

uint32_t FlightLog::collective(const CollectiveCall& call, int64_t queued_ns) {
  if (recorder_ == nullptr) return FlightRing::kNone;
  FlightRecord record;
  record.sequence = call.sequence;
  record.group = group_;
  record.kind = static_cast<uint8_t>(call.collective);
  record.algorithm = static_cast<uint8_t>(call.algorithm);
  record.dtype = static_cast<uint8_t>(call.dtype);
  record.op = static_cast<uint8_t>(call.op);
  record.bytes = call.bytes;
  record.queued_ns = queued_ns;
  record.peer = static_cast<int16_t>(call.root);
  return recorder_->ring().add(record);
}

uint32_t FlightLog::point_to_point(uint8_t kind, uint64_t bytes, int peer, int32_t tag,
                                   int64_t queued_ns) {
  if (recorder_ == nullptr) return FlightRing::kNone;
  FlightRecord record;
  record.sequence = ++point_to_points_;
  record.group = group_;
  record.kind = kind;
  record.bytes = bytes;
  record.queued_ns = queued_ns;
  record.tag = tag;
  record.peer = static_cast<int16_t>(peer);
  return recorder_->ring().add(record);
}

void FlightLog::start_collective(uint32_t slot, int root, int64_t queued_ns) {
  if (slot == FlightRing::kNone) return;
  recorder_->ring().start(slot, std::max(queued_ns, last_end_ns_), root);
}

void FlightLog::end_collective(uint32_t slot, bool ok) {
  if (slot == FlightRing::kNone) return;
  last_end_ns_ = clock_->now_ns();
  recorder_->ring().end(slot, last_end_ns_, ok);
}

void FlightLog::start_point_to_point(uint32_t slot, int peer) {
  if (slot != FlightRing::kNone) recorder_->ring().start(slot, clock_->now_ns(), peer);
}

void FlightLog::end_point_to_point(uint32_t slot, bool ok) {
  if (slot != FlightRing::kNone) recorder_->ring().end(slot, clock_->now_ns(), ok);
}

void FlightLog::failed(const std::string& why) {
  if (recorder_ != nullptr) recorder_->group_failed(group_, why);
}

void FlightLog::left() {
  if (recorder_ != nullptr) recorder_->group_left(group_);
}

}  // namespace rdmacoll
