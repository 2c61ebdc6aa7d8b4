// FlightRecorder: what this process has done and is doing, for when nobody knows why a job hangs:
// the ring of its last operations, and the groups and sessions they belong to. FlightLog: a group's
// hand in it; session_log.h has a session's. flight_dump.h makes text of it.
// Floor: engine/recorder. Thread: FlightRecorder any; FlightLog the driver's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/log.h"
#include "csrc/engine/recorder/flight_kind.h"
#include "csrc/engine/recorder/flight_ring.h"
#include "csrc/engine/work/call.h"

namespace rdmacoll {

// What a group is called outside of the engine; its ranks as the whole job numbers them, empty:
// it is the whole job.
struct GroupName {
  std::string name{};
  std::vector<uint64_t> ranks{};
};

struct FlightGroup {
  uint32_t id = 0;
  GroupName name;
  int rank = 0;
  int size = 0;
  std::string reach{};    // over what its ranks are reached, for people
  std::string failure{};  // empty: none
  bool left = false;
};

// This process and another one, whose memory it reads and writes (engine/session).
struct FlightSession {
  uint32_t id = 0;        // no group has it
  std::string with{};     // the other, for people; empty: any
  std::string reach{};    // the transport
  std::string failure{};  // why it has ended
  bool has_ended = false;
};

// A thread that waits for another process, where nothing of the ring stands for that.
struct FlightWait {
  FlightKind kind = FlightKind::Wait;
  std::string with{};
  int64_t since_ns = 0;
};

struct FlightSnapshot {
  std::vector<FlightGroup> groups;
  std::vector<FlightSession> sessions;
  std::vector<FlightWait> waits;
  std::vector<FlightRecord> records;
  uint64_t left_out = 0;  // operations that found no room beside those in flight
};

class FlightRecorder {
 public:
  explicit FlightRecorder(const Config& config);

  FlightSnapshot snapshot() const;
  int64_t rank() const { return rank_; }  // in the job; -1: no launcher has said
  const std::string& dump_dir() const { return dump_dir_; }
  const Log& log() const { return log_; }

  // --- for SessionLog and its waits -------------------------------------------------------------
  uint32_t add_session(FlightSession session);
  void session_renamed(uint32_t id, const std::string& with);
  void session_ended(uint32_t id, const std::string& why);
  uint32_t add_wait(FlightWait wait);
  void end_wait(uint32_t id);

  // --- for FlightLog --------------------------------------------------------------------------
  uint32_t add_group(FlightGroup group);
  // Notes why, and writes a dump if the user has named a folder for dumps.
  void group_failed(uint32_t id, const std::string& why);
  void group_left(uint32_t id);
  FlightRing& ring() { return ring_; }

 private:
  // The groups and sessions of what the ring holds.
  std::unordered_set<uint32_t> told_of() const;
  void forget_old(const std::unordered_set<uint32_t>& told_of);

  const int64_t rank_;
  const std::string dump_dir_;
  const Log log_;
  FlightRing ring_;
  // The fields below; the driver takes it only when a group or session begins or ends.
  mutable std::mutex mutex_;
  std::map<uint32_t, FlightGroup> groups_;
  std::map<uint32_t, FlightSession> sessions_;
  std::map<uint32_t, FlightWait> waits_;
  uint32_t last_id_ = 0;
  uint32_t failures_ = 0;
};

// As long as the wait.
class FlightWaitGuard {
 public:
  FlightWaitGuard() = default;
  FlightWaitGuard(std::shared_ptr<FlightRecorder> recorder, FlightWait wait)
      : recorder_(std::move(recorder)), id_(recorder_->add_wait(std::move(wait))) {}
  FlightWaitGuard(FlightWaitGuard&& other) noexcept { swap(other); }
  FlightWaitGuard& operator=(FlightWaitGuard&& other) noexcept {
    swap(other);
    return *this;
  }
  ~FlightWaitGuard() {
    if (recorder_ != nullptr) recorder_->end_wait(id_);
  }

 private:
  void swap(FlightWaitGuard& other) noexcept {
    recorder_.swap(other.recorder_);
    std::swap(id_, other.id_);
  }
  std::shared_ptr<FlightRecorder> recorder_;
  uint32_t id_ = 0;
};

// Notes the operations of one group. Slots are as FlightRing's; those of no record are ignored, and
// so is everything where there is no recorder.
class FlightLog {
 public:
  FlightLog() = default;
  FlightLog(const Clock& clock, std::shared_ptr<FlightRecorder> recorder, FlightGroup group);

  uint32_t collective(const CollectiveCall& call, int64_t queued_ns);
  uint32_t point_to_point(uint8_t kind, uint64_t bytes, int peer, int32_t tag, int64_t queued_ns);
  // The collectives of a group run one after another. So each begins when it is queued or when the
  // one before it has ended, and nobody need ask the clock, which costs as much as all the rest.
  void start_collective(uint32_t slot, int root, int64_t queued_ns);
  void end_collective(uint32_t slot, bool ok);
  // It has been matched with this peer.
  void start_point_to_point(uint32_t slot, int peer);
  void end_point_to_point(uint32_t slot, bool ok);

  void failed(const std::string& why);
  void left();

 private:
  const Clock* clock_ = nullptr;
  std::shared_ptr<FlightRecorder> recorder_;
  uint32_t group_ = 0;
  uint64_t point_to_points_ = 0;
  int64_t last_end_ns_ = 0;
};

}  // namespace rdmacoll
