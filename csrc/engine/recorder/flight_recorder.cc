// FlightRecorder and FlightLog. Floor: engine/recorder. Thread: see flight_recorder.h.
#include "csrc/engine/recorder/flight_recorder.h"

#include <algorithm>
#include <unordered_set>

#include "csrc/engine/recorder/flight_dump.h"

namespace rdmacoll {

FlightRecorder::FlightRecorder(const Config& config)
    : rank_(config.place.rank),
      dump_dir_(config.dump_dir),
      log_(config.log_level, rank_ < 0 ? "rdmacoll" : "rank " + std::to_string(rank_)),
      ring_(static_cast<size_t>(config.flight_records)) {}

FlightSnapshot FlightRecorder::snapshot() const {
  FlightSnapshot snapshot{{}, ring_.snapshot(), ring_.left_out()};
  const std::lock_guard<std::mutex> lock(mutex_);
  snapshot.groups = groups_;
  return snapshot;
}

uint32_t FlightRecorder::add_group(FlightGroup group) {
  std::unordered_set<uint32_t> told_of;
  for (const FlightRecord& record : ring_.snapshot()) told_of.insert(record.group);
  const std::lock_guard<std::mutex> lock(mutex_);
  // Groups may come and go for ever: those that nothing tells of any more are forgotten.
  std::erase_if(groups_,
                [&](const FlightGroup& old) { return old.left && !told_of.contains(old.id); });
  group.id = next_group_++;
  groups_.push_back(std::move(group));
  return groups_.back().id;
}

FlightGroup* FlightRecorder::find(uint32_t id) {
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const FlightGroup& group) { return group.id == id; });
  return found == groups_.end() ? nullptr : &*found;
}

void FlightRecorder::group_failed(uint32_t id, const std::string& why) {
  uint32_t failure = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (FlightGroup* group = find(id)) group->failure = why;
    failure = ++failures_;
  }
  if (dump_dir_.empty()) return;
  auto path = write_flight_dump(*this, why, "-error" + std::to_string(failure));
  log_.write(LogLevel::Warn,
             path.ok() ? "what it was doing is in " + path.value() : path.status().message());
}

void FlightRecorder::group_left(uint32_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (FlightGroup* group = find(id)) group->left = true;
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
