// StoreChoice: whether what an operation writes for peers of this host goes past the caches. What
// is quicker depends on how far apart the ranks' cores are, and the system moves them: between near
// ones streaming takes up to twice as long as staying in the caches, between distant ones a third
// to a fifth. So it is learnt from the operations themselves, again and again: of every kPeriod of
// one kind and size the first few try both, and their copies are timed.
//
// All ranks of a group try the same in the same collective, as they start the same ones: what is
// timed is one's own writing and the reading of what others wrote alike. Of a message its sender
// times the writing. What a rank then takes is its own affair.
// Floor: engine. Thread: the driver.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/memory/copy.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

class StoreChoice {
 public:
  static constexpr uint64_t kBytesMin = 64 * 1024;  // auto: smaller operations stay in the caches
  static constexpr uint32_t kPeriod = 128;
  static constexpr uint32_t kTrials = 4;  // two of each: the first may meet pages never touched

  // The setting is Config's `stores`.
  StoreChoice(const std::string& setting, const Clock& clock);

  struct Kind {
    uint32_t operations = 0;
    double ns_per_byte[2] = {};  // the least of the trials so far, by Stores
    Stores best = Stores::Cached;
  };
  // What one operation uses.
  struct Use {
    Stores stores = Stores::Cached;
    Kind* trial = nullptr;  // it is one
    uint32_t number = 0;    // of the trials
    uint64_t bytes = 0;
    int64_t busy_ns = 0;
  };

  // A collective begins. `in_heap`: peers read its results, too.
  Use begin(Collective collective, uint64_t bytes, bool in_heap);
  // A message begins to move; any number of them may do so at once.
  Use begin_message(uint64_t bytes);
  // Calls what moves some of its bytes.
  template <typename Move>
  void time(Use& use, Move move) {
    if (use.trial == nullptr) return move();
    const int64_t before_ns = clock_.now_ns();
    move();
    use.busy_ns += clock_.now_ns() - before_ns;
  }
  // It has ended.
  void end(const Use& use);

 private:
  static constexpr uint32_t kSizes = 16;  // powers of two from kBytesMin on; the last: all above
  using Sizes = std::array<Kind, kSizes>;
  Use begin(Sizes& kinds, uint64_t bytes);

  const std::optional<Stores> forced_;
  const Clock& clock_;
  std::array<std::array<Sizes, kCollectives>, 2> collectives_;
  Sizes messages_;
};

}  // namespace rdmacoll
