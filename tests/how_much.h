// How much tests of many cases try: all in nightly, elsewhere what guards a change, and less of it
// under sanitizers. These make it several times as slow, and find nothing in the many cases that is
// not in the few. Floor: tests.
#pragma once

#include <cstdlib>

namespace rdmacoll {

inline bool is_nightly() { return std::getenv("RDMACOLL_NIGHTLY") != nullptr; }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

}  // namespace rdmacoll
