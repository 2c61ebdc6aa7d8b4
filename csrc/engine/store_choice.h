// StoreChoice: whether what an operation writes for peers of this host goes past the caches. What
// is quicker depends on how far apart the ranks' cores are, and the system moves them: between near
// ones streaming takes up to twice as long as staying in the caches, between distant ones a third
// to a fifth. So it is learnt from the operations themselves, again and again: of every kPeriod of
// one kind and size the first few try both, and their copies are timed.
//
// All ranks of a group try the same in the same operation, as they start the same ones: what is
// timed is one's own writing and the reading of what others wrote alike. What a rank then takes is
// its own affair.
// Floor: engine. Thread: the driver.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/memory/stream_copy.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

class StoreChoice {
 public:
  static constexpr uint64_t kBytesMin = 64 * 1024;  // auto: smaller operations stay in the caches
  static constexpr uint32_t kPeriod = 128;
  static constexpr uint32_t kTrials = 4;  // two of each: the first may meet pages never touched

  // The setting is Config's `stores`.
  StoreChoice(const std::string& setting, const Clock& clock);

  // An operation begins: the stores that it is to use. `in_heap`: peers read its results, too.
  Stores begin(Collective collective, uint64_t bytes, bool in_heap);
  // Calls what moves some of its bytes.
  template <typename Move>
  void time(Move move) {
    if (trial_ == nullptr) return move();
    const int64_t before_ns = clock_.now_ns();
    move();
    busy_ns_ += clock_.now_ns() - before_ns;
  }
  // It has ended.
  void end();

 private:
  struct Kind {
    uint32_t operations = 0;
    double ns_per_byte[2] = {};  // the least of the trials so far, by Stores
    Stores best = Stores::Cached;
  };
  static constexpr uint32_t kSizes = 16;  // powers of two from kBytesMin on; the last: all above
  Kind& kind(Collective collective, uint64_t bytes, bool in_heap);

  const std::optional<Stores> forced_;
  const Clock& clock_;
  std::array<std::array<std::array<Kind, kSizes>, kCollectives>, 2> kinds_;

  // The operation at hand, if it is a trial.
  Kind* trial_ = nullptr;
  Stores tried_ = Stores::Cached;
  uint64_t bytes_ = 0;
  int64_t busy_ns_ = 0;
};

}  // namespace rdmacoll
