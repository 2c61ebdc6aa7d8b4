// The waiting loop of the set-up verbs: whoever waits serves all sockets, so that processes may
// connect to each other in any order.
// Floor: transport/shm, inside ShmTransport only. Thread: any.
#pragma once

#include <poll.h>

#include <algorithm>

#include "csrc/transport/shm/transport.h"

namespace rdmacoll {

template <typename Ready>
bool ShmTransport::serve_until(Deadline deadline, Ready ready) {
  // Another thread may take the very message that this one waits for: look again soon.
  static constexpr int64_t kLookAgainMs = 2;
  for (;;) {
    bool is_for_others = false;  // what makes the set readable
    {
      const std::lock_guard lock(mutex_);
      look();
      if (ready()) return true;
      is_for_others = news_.rings_for_others();
    }
    const int64_t left_ms = deadline.left_ms(clock_);
    if (left_ms == 0) return false;
    pollfd waited{is_for_others ? -1 : setup_set_.get(), POLLIN, 0};
    ::poll(&waited, 1, static_cast<int>(std::min(left_ms, kLookAgainMs)));
  }
}

}  // namespace rdmacoll
