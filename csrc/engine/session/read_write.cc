// Read and Write. Floor: engine/session. Thread: the driver.
#include "csrc/engine/session/read_write.h"

#include "csrc/engine/session/session_memory.h"

namespace rdmacoll {

Transfer::State Read::advance(const Way& way) {
  const bool moved = mover_.advance(way);
  if (mover_.is_done()) return State::Ended;
  return moved ? State::Moved : State::Waits;
}

// The notification goes behind the last piece, whether or not that has left.
Transfer::State Write::advance(const Way& way) {
  bool moved = mover_.advance(way);
  if (mover_.is_posted() && notification_.counter > 0 && way.may_notify) {
    const Link& link = way.link;
    const RemoteSlice line{link.slab.id, notification_offset(notification_.line), kLineBytes};
    if (link.transport->signal(link.peer, kSessionChannel, line, notification_.counter, Header{}) !=
        Posted::Full) {
      notification_.counter = 0;
      moved = true;
    }
  }
  if (mover_.is_done() && notification_.counter == 0) return State::Ended;
  return moved ? State::Moved : State::Waits;
}

}  // namespace rdmacoll
