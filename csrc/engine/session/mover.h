// Mover: moves bytes between this process and a peer's region, in pieces, so that nobody else who
// is driven waits long for it. Floor: engine/session. Thread: the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

// Bytes of the peer's region, counted from an offset in it, and where they belong in memory of this
// process.
struct MovedRange {
  uint64_t theirs = 0;
  uint64_t mine = 0;
  uint64_t bytes = 0;
};

class Mover {
 public:
  Mover() = default;
  // `theirs` is open, and holds the bytes from `offset` on. Where `mine` lies in a region of this
  // process nothing is copied on the way.
  Mover(Direction direction, LocalSlice mine, const Region& theirs, uint64_t offset);
  // Only these, of a byte or more each. They go side by side: a device is rung once for all that
  // are posted in a round, and over tcp many leave in one call.
  Mover(Direction direction, LocalSlice mine, const Region& theirs, uint64_t offset,
        std::vector<MovedRange> ranges);

  // A round; whether anything moved.
  bool advance(const Way& way);
  // Whether all of it has been handed to the transport: a signal after it comes behind it.
  bool is_posted() const;
  // Whether it is done, here: what was read is here; what was written may be written over.
  bool is_done() const { return is_posted() && pieces_.empty(); }
  // Whether the transport may still read or write memory of this process for it.
  bool is_under_way() const { return !pieces_.empty(); }

 private:
  // Handed to the transport. Those of one peer are done in their order.
  struct Piece {
    Ticket ticket{};
    uint64_t bytes = 0;
    std::byte* mine = nullptr;
    std::byte* staged = nullptr;  // where it is on its way; nullptr: in its own memory
    uint32_t place = 0;           // that this is part of
  };
  // The place of the staging to which pieces are added.
  struct Open {
    uint32_t place = 0;
    uint64_t used = 0;  // bytes
  };
  Stores stores() const;
  uint64_t piece_bytes() const;
  bool post(const Way& way);
  std::optional<LocalSlice> stage(const Way& way, uint64_t bytes);
  void give_back(const Way& way, const Piece& last_there);
  bool collect(const Way& way);

  Direction direction_ = Direction::ToPeer;
  LocalSlice mine_{};
  Region theirs_{};
  uint64_t offset_ = 0;
  std::vector<MovedRange> ranges_;
  size_t next_ = 0;         // of ranges_
  MovedRange range_{};      // that is posted now
  uint64_t posted_ = 0;     // bytes of it
  uint64_t under_way_ = 0;  // bytes of the pieces
  Fifo<Piece> pieces_;
  std::optional<Open> open_;
};

}  // namespace rdmacoll
