// FlightRecorder: what this process has done and is doing, for when nobody knows why a job hangs:
// the ring of its last operations and the groups they belong to. FlightLog: a group's hand in it.
// flight_dump.h makes text of it.
// Floor: engine/recorder. Thread: FlightRecorder any; FlightLog the driver's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/log.h"
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

struct FlightSnapshot {
  std::vector<FlightGroup> groups;
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

  // --- for FlightLog --------------------------------------------------------------------------
  uint32_t add_group(FlightGroup group);
  // Notes why, and writes a dump if the user has named a folder for dumps.
  void group_failed(uint32_t id, const std::string& why);
  void group_left(uint32_t id);
  FlightRing& ring() { return ring_; }

 private:
  FlightGroup* find(uint32_t id);

  const int64_t rank_;
  const std::string dump_dir_;
  const Log log_;
  FlightRing ring_;
  mutable std::mutex mutex_;  // the fields below; the driver takes it only when a group ends
  std::vector<FlightGroup> groups_;
  uint32_t next_group_ = 1;
  uint32_t failures_ = 0;
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
