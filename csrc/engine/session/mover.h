// Mover: moves bytes between this process and a peer's region, in pieces, so that nobody else who
// is driven waits long for it. Floor: engine/session. Thread: the driver.
#pragma once

#include <cstdint>

#include "csrc/base/fifo.h"
#include "csrc/engine/channel/link.h"
#include "csrc/engine/session/landings.h"
#include "csrc/engine/session/staging.h"
#include "csrc/memory/region.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

enum class Direction : uint8_t { ToPeer, FromPeer };

// What the transfers of a session go by.
struct Way {
  const Link& link;
  Staging& staging;
  Landings& landings;
  // Whether all that is to be notified of in the same line before this has been.
  bool may_notify = true;
  // Whether all that was asked for before this has ended.
  bool is_first = false;
};

class Mover {
 public:
  Mover() = default;
  // `theirs` is open, and holds the bytes from `offset` on. Where `mine` lies in a region of this
  // process nothing is copied on the way.
  Mover(Direction direction, LocalSlice mine, const Region& theirs, uint64_t offset);

  // A round; whether anything moved.
  bool advance(const Way& way);
  // Whether all of it has been handed to the transport: a signal after it comes behind it.
  bool is_posted() const { return posted_ == mine_.bytes; }
  // Whether it is done, here: what was read is here; what was written may be written over.
  bool is_done() const { return is_posted() && pieces_.empty(); }
  // Whether the transport may still read or write memory of this process for it.
  bool is_under_way() const { return !pieces_.empty(); }
  uint64_t bytes() const { return mine_.bytes; }

 private:
  // Handed to the transport. Those of one peer are done in their order.
  struct Piece {
    Ticket ticket{};
    uint64_t offset = 0;
    LocalSlice staged{};  // where it is on its way; none: in its own memory
    uint32_t place = 0;
  };
  uint64_t piece_bytes() const;
  bool post(const Way& way);
  bool collect(const Way& way);

  Direction direction_ = Direction::ToPeer;
  LocalSlice mine_{};
  Region theirs_{};
  uint64_t offset_ = 0;
  uint64_t posted_ = 0;  // bytes
  Fifo<Piece> pieces_;
};

}  // namespace rdmacoll
