// Shared: memory of a case's processes: over it the ranks find each other, and tell their parent
// what became of them. Floor: tests. Thread: atomics, and texts before their outcome.
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/processes/meeting.h"

namespace rdmacoll::faults {

inline constexpr size_t kTextBytes = 2048;

enum class Outcome : int { Unknown, Raised, Wrong };

struct Shared {
  Meeting meeting;
  Meeting of_survivors;
  std::atomic<int> ready;         // ranks that have ended the rounds before it
  std::atomic<int> victim_pid;    // before the fault
  std::atomic<int64_t> fault_ns;  // when it happened
  std::atomic<int> raised;        // survivors that have
  std::atomic<bool> woken;        // the victim has raised, too
  struct Rank {
    std::atomic<Outcome> outcome;
    std::atomic<int64_t> raised_ns;
    char text[kTextBytes];  // the error, or what is wrong
  } ranks[Meeting::kMaxRanks];
};

}  // namespace rdmacoll::faults
