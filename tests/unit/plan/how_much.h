// How much the proofs try: all of it in nightly, what guards a change elsewhere, and less under
// sanitizers, which make it ten times as slow and find nothing in a large world that is not in a
// small. Floor: tests of plan.
#pragma once

#include <cstdlib>

namespace rdmacoll {

inline bool is_nightly() { return std::getenv("RDMACOLL_NIGHTLY") != nullptr; }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace rdmacoll
