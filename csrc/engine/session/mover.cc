// Mover. Floor: engine/session. Thread: the driver.
#include "csrc/engine/session/mover.h"

#include <algorithm>

#include "csrc/base/check.h"
#include "csrc/base/limits.h"
#include "csrc/engine/session/session_memory.h"
#include "csrc/memory/copy.h"

namespace rdmacoll {
namespace {

// What is posted at a time, and how often: so much is under way on a long line as for
// point-to-point.
constexpr uint64_t kPieceBytes = 4u << 20;
constexpr size_t kPiecesUnderWay = 8;
// Where memory is mapped a piece is copied by this thread, while nobody else is driven: of what is
// short enough to stay in the caches, for about 0.1 ms.
constexpr uint64_t kCopiedBytes = 1u << 20;

}  // namespace

Mover::Mover(Direction direction, LocalSlice mine, const Region& theirs, uint64_t offset)
    : direction_(direction), mine_(mine), theirs_(theirs), offset_(offset) {
  RDMACOLL_CHECK(theirs.holds(offset, mine.bytes));
}

bool Mover::advance(const Way& way) {
  const bool is_mapped = theirs_.base != nullptr;
  bool moved = collect(way);
  while (!is_posted() && pieces_.size() < kPiecesUnderWay && post(way)) {
    moved = true;
    if (is_mapped) break;
  }
  return collect(way) || moved;
}

uint64_t Mover::piece_bytes() const {
  const bool stays_in_caches = theirs_.base != nullptr && mine_.bytes < kStreamBytes;
  return std::min(stays_in_caches ? kCopiedBytes : kPieceBytes, mine_.bytes - posted_);
}

// False: nothing more can be, now.
bool Mover::post(const Way& way) {
  const bool is_staged = mine_.region == kNoRegion && way.staging.exists();
  Piece piece{.offset = posted_};
  LocalSlice mine{mine_.data + posted_, piece_bytes(), mine_.region};
  if (is_staged) {
    const auto place = way.staging.take();
    if (!place) return false;
    mine.bytes = std::min(mine.bytes, Staging::kPlaceBytes);
    piece.place = *place;
    piece.staged = way.staging.at(*place, mine.bytes);
    if (direction_ == Direction::ToPeer) {
      copy_bytes(piece.staged.data, mine.data, mine.bytes, Stores::Cached);
    }
    mine = piece.staged;
  }
  const RemoteSlice theirs{theirs_.id, offset_ + posted_, mine.bytes};
  Transport& transport = *way.link.transport;
  const Posted posted =
      direction_ == Direction::ToPeer
          ? transport.put(way.link.peer, kSessionChannel, mine, theirs, &piece.ticket)
          : transport.get(way.link.peer, kSessionChannel, theirs, mine, &piece.ticket);
  if (posted == Posted::Full) {
    if (is_staged) way.staging.give_back(piece.place);
    return false;
  }
  posted_ += mine.bytes;
  pieces_.push(piece);
  return true;
}

// Those that are done. Whether any was. The end of a peer makes all tickets done (transport.h), and
// nothing of what was asked for need be here then: its session fails, with all that is left.
bool Mover::collect(const Way& way) {
  bool were_any = false;
  while (!pieces_.empty() && pieces_.front().ticket.done()) {
    if (!way.link.transport->peer_status(way.link.peer).ok()) return false;
    const Piece piece = pieces_.pop();
    were_any = true;
    if (piece.staged.data == nullptr) continue;
    if (direction_ == Direction::FromPeer) {
      copy_bytes(mine_.data + piece.offset, piece.staged.data, piece.staged.bytes, Stores::Cached);
    }
    way.staging.give_back(piece.place);
  }
  return were_any;
}

}  // namespace rdmacoll
