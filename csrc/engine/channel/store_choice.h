// StoreChoice: whether what an operation writes for peers of this host goes past the caches. What
// is quicker depends on how far apart the ranks' cores are, and the system moves them: between near
// ones streaming takes up to twice as long as staying in the caches, between distant ones a third
// to a fifth. So it is learnt from the operations themselves, again and again: of one kind and size
// a few in a row try the one, then as many the other, and the copies of the last of each are timed.
// The first runs of a row are not timed: the caches still hold what the other mode has left there.
//
// All ranks of a group try the same in the same collective, as they start the same ones: what is
// timed is one's own writing and the reading of what others wrote alike. Of a message its sender
// times the writing. What a rank then takes is its own affair.
// Floor: engine/channel. Thread: the driver.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/limits.h"
#include "csrc/memory/copy.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

class StoreChoice {
 public:
  static constexpr uint64_t kBytesMin = 64 * 1024;  // auto: smaller operations stay in the caches
  // Operations of one kind and size that use the same stores in a row while both are tried, and how
  // many of these rows make a period.
  static constexpr uint32_t row(uint64_t bytes) {
    const uint64_t round = kRingBytes / std::bit_floor(bytes);  // the same for all sizes of a kind
    return static_cast<uint32_t>(std::clamp<uint64_t>(round, 1, kSlotDepth)) + kTimed;
  }
  static constexpr uint32_t kRows = 48;

  // The setting is Config's `stores`.
  StoreChoice(const std::string& setting, const Clock& clock);

  struct Kind {
    uint32_t operations = 0;
    double ns_per_byte[2] = {};  // the least of those timed so far, by Stores
    Stores best = Stores::Cached;
  };
  // What one operation uses.
  struct Use {
    Stores stores = Stores::Cached;
    Kind* timed = nullptr;
    bool first = false;  // of those timed with these stores
    bool last = false;   // of all in this period
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
    if (use.timed == nullptr) return move();
    const int64_t before_ns = clock_.now_ns();
    move();
    use.busy_ns += clock_.now_ns() - before_ns;
  }
  // It has ended.
  void end(const Use& use);

 private:
  // After so many bytes, or a message in each slot, an operation meets the slots again.
  static constexpr uint64_t kRingBytes = kSlotDepth * kSlotBytesMax;
  static constexpr uint32_t kTimed = 2;  // at the end of a row

  static constexpr uint32_t kSizes = 16;  // powers of two from kBytesMin on; the last: all above
  using Sizes = std::array<Kind, kSizes>;
  Use begin(Sizes& kinds, uint64_t bytes);

  const std::optional<Stores> forced_;
  const Clock& clock_;
  std::array<std::array<Sizes, kCollectives>, 2> collectives_;
  Sizes messages_;
};

}  // namespace rdmacoll
