// What the plans of two levels use their channels for.
// Floor: plan/layered.
#pragma once

#include "csrc/plan/plan.h"

namespace rdmacoll {

inline constexpr uint8_t kSums = kOrderedChannel + 1;        // slots: of an island, or several
inline constexpr uint8_t kInputs = kFirstStageChannel;       // stages: of this rank
inline constexpr uint8_t kResults = kFirstStageChannel + 1;  // stages: made here
inline constexpr uint8_t kRelayed = kFirstStageChannel + 2;  // stages: from another island
static_assert(kSums < kSlotChannels && kRelayed < kPlanChannels);

}  // namespace rdmacoll
