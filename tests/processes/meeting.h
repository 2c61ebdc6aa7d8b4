// Meeting: how forked ranks find each other, once, over memory that they share.
// Floor: tests and benchmarks. Thread: a rank's main one; records are whole before their counter.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/engine/connect/bootstrap.h"

namespace rdmacoll {

// Zeroed memory shared by all.
struct Meeting {
  static constexpr int kMaxRanks = 64;
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

inline void MeetingBootstrap::give(const std::string& mine) {
  RDMACOLL_CHECK(mine.size() <= Meeting::kRecordBytes);
  std::memcpy(meeting_.records[rank_], mine.data(), mine.size());
  meeting_.record_bytes[rank_] = static_cast<uint32_t>(mine.size());
  meeting_.arrived.fetch_add(1);
}

inline Result<std::vector<std::string>> MeetingBootstrap::all_gather(const std::string& mine,
                                                                     Deadline deadline) {
  give(mine);
  const SteadyClock clock;
  while (meeting_.arrived.load() < size_) {
    if (deadline.passed(clock)) return Status(StatusCode::Timeout, "the ranks did not all come");
    usleep(100);
  }
  std::vector<std::string> all;
  for (int r = 0; r < size_; ++r) all.emplace_back(meeting_.records[r], meeting_.record_bytes[r]);
  return all;
}

}  // namespace rdmacoll
