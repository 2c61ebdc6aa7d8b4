// Shared: memory of a case's processes: over it the ranks find each other, and tell their parent
// what became of them. Floor: tests. Thread: atomics, and records before their counter.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "csrc/engine/bootstrap.h"

namespace rdmacoll::faults {

inline constexpr int kMaxRanks = 8;
inline constexpr size_t kRecordBytes = 8192;
inline constexpr size_t kTextBytes = 2048;

// A rendezvous of some ranks, once.
struct Meeting {
  std::atomic<int> arrived;
  uint32_t record_bytes[kMaxRanks];
  char records[kMaxRanks][kRecordBytes];
};

enum class Outcome : int { Unknown, Raised, Wrong };

struct Shared {
  Meeting meeting;
  Meeting of_survivors;
  std::atomic<int64_t> fault_ns;  // when it happened
  std::atomic<int> raised;        // survivors that have
  std::atomic<bool> woken;        // the victim has raised, too
  struct Rank {
    std::atomic<Outcome> outcome;
    std::atomic<int64_t> raised_ns;
    char text[kTextBytes];  // the error, or what is wrong
  } ranks[kMaxRanks];
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

}  // namespace rdmacoll::faults
