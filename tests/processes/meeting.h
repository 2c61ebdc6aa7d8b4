// Meeting: how forked ranks find each other, once, over memory that they share.
// Floor: tests. Thread: a rank's main one; records are whole before their counter.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "csrc/engine/bootstrap.h"

namespace rdmacoll {

// Zeroed memory shared by all.
struct Meeting {
  static constexpr int kMaxRanks = 8;
  static constexpr size_t kRecordBytes = 8192;

  std::atomic<int> arrived;
  uint32_t record_bytes[kMaxRanks];
  char records[kMaxRanks][kRecordBytes];
};

class MeetingBootstrap final : public Bootstrap {
 public:
  MeetingBootstrap(Meeting& meeting, int rank, int size)
      : meeting_(meeting), rank_(rank), size_(size) {}

  Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline deadline) override;
  void decline(const std::string& mine) override { give(mine); }
  void give(const std::string& mine);

 private:
  Meeting& meeting_;
  const int rank_;
  const int size_;
};

}  // namespace rdmacoll
