// Mover. Floor: engine/session. Thread: the driver.
#include "csrc/engine/session/mover.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/limits.h"
#include "csrc/engine/session/session_memory.h"
#include "csrc/memory/copy.h"

namespace rdmacoll {
namespace {

// What is posted at a time, and how much is under way: on a long line as much as for
// point-to-point. Many small pieces fill a send queue before that.
constexpr uint64_t kPieceBytes = 4u << 20;
constexpr uint64_t kBytesUnderWay = 8 * kPieceBytes;
constexpr size_t kPiecesUnderWay = 128;
// Where memory is mapped a piece is copied by this thread, while nobody else is driven: of what is
// short enough to stay in the caches, for about 0.1 ms.
constexpr uint64_t kCopiedBytes = 1u << 20;

}  // namespace

Mover::Mover(Direction direction, LocalSlice mine, const Region& theirs, uint64_t offset)
    : direction_(direction),
      mine_(mine),
      theirs_(theirs),
      offset_(offset),
      range_{.theirs = 0, .mine = 0, .bytes = mine.bytes} {
  RDMACOLL_CHECK(theirs.holds(offset, mine.bytes));
}

Mover::Mover(Direction direction, LocalSlice mine, const Region& theirs, uint64_t offset,
             std::vector<MovedRange> ranges)
    : direction_(direction),
      mine_(mine),
      theirs_(theirs),
      offset_(offset),
      ranges_(std::move(ranges)) {
  for (const MovedRange& range : ranges_) {
    RDMACOLL_CHECK(range.bytes > 0 && theirs.holds(offset + range.theirs, range.bytes) &&
                   range.mine <= mine.bytes && range.bytes <= mine.bytes - range.mine);
  }
}

bool Mover::is_posted() const { return posted_ == range_.bytes && next_ == ranges_.size(); }

bool Mover::advance(const Way& way) {
  const bool is_mapped = theirs_.base != nullptr;
  bool moved = collect(way);
  uint64_t bytes = 0;
  while (pieces_.size() < kPiecesUnderWay && under_way_ < kBytesUnderWay) {
    if (posted_ == range_.bytes) {
      if (next_ == ranges_.size()) break;
      range_ = ranges_[next_++];
      posted_ = 0;
    }
    const uint64_t before = posted_;
    if (!post(way)) break;
    moved = true;
    bytes += posted_ - before;
    if (is_mapped && bytes >= kCopiedBytes) break;
  }
  // Gets may wait for poll(), to leave together. The next round may be another thread's, and late.
  const bool may_wait = !is_mapped && direction_ == Direction::FromPeer;
  if (may_wait && bytes > 0) way.link.transport->poll();
  return collect(way) || moved;
}

// What is too large to stay in the caches would only evict what else is there.
Stores Mover::stores() const {
  return range_.bytes >= kStreamBytes ? Stores::Streamed : mine_.stores;
}

uint64_t Mover::piece_bytes() const {
  const bool stays_in_caches = theirs_.base != nullptr && stores() == Stores::Cached;
  return std::min(stays_in_caches ? kCopiedBytes : kPieceBytes, range_.bytes - posted_);
}

// False: nothing more can be, now.
bool Mover::post(const Way& way) {
  Piece piece{.bytes = piece_bytes(), .mine = mine_.data + range_.mine + posted_};
  LocalSlice mine{piece.mine, piece.bytes, mine_.region, stores()};
  if (mine_.region == kNoRegion && way.staging.exists()) {
    const auto staged = stage(way, piece.bytes);
    if (!staged) return false;
    mine = *staged;
    piece.bytes = mine.bytes;
    piece.staged = mine.data;
    piece.place = open_->place;
    if (direction_ == Direction::ToPeer) {
      copy_bytes(piece.staged, piece.mine, piece.bytes, Stores::Cached);
    }
  }
  const RemoteSlice theirs{theirs_.id, offset_ + range_.theirs + posted_, piece.bytes};
  Transport& transport = *way.link.transport;
  const Posted posted =
      direction_ == Direction::ToPeer
          ? transport.put(way.link.peer, kSessionChannel, mine, theirs, &piece.ticket)
          : transport.get(way.link.peer, kSessionChannel, theirs, mine, &piece.ticket);
  if (posted == Posted::Full) {
    if (piece.staged != nullptr) give_back(way, piece);
    return false;
  }
  posted_ += piece.bytes;
  under_way_ += piece.bytes;
  if (piece.staged != nullptr)
    open_->used += (piece.bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  pieces_.push(piece);
  return true;
}

// A piece of at most so many bytes in a place that is open, or in another one; nullopt: all are in
// use. Small ones share a place, else a few of them would have all.
std::optional<LocalSlice> Mover::stage(const Way& way, uint64_t bytes) {
  const uint64_t wanted = std::min(bytes, Staging::kPlaceBytes);
  if (open_ && open_->used + wanted > Staging::kPlaceBytes) open_.reset();
  if (!open_) {
    const auto place = way.staging.take();
    if (!place) return std::nullopt;
    open_ = {*place, 0};
  }
  LocalSlice place = way.staging.at(open_->place, wanted);
  place.data += open_->used;
  return place;
}

// Once no piece is under way there.
void Mover::give_back(const Way& way, const Piece& last_there) {
  const auto is_there = [&](const Piece& piece) { return piece.place == last_there.place; };
  if (!pieces_.empty() && (is_there(pieces_.front()) || is_there(pieces_.back()))) return;
  if (open_ && open_->place == last_there.place) open_.reset();
  way.staging.give_back(last_there.place);
}

// Those that are done. Whether any was. The end of a peer makes all tickets done (transport.h), and
// nothing of what was asked for need be here then: its session fails, with all that is left.
bool Mover::collect(const Way& way) {
  bool were_any = false;
  while (!pieces_.empty() && pieces_.front().ticket.done()) {
    if (!way.link.transport->peer_status(way.link.peer).ok()) return false;
    const Piece piece = pieces_.pop();
    were_any = true;
    under_way_ -= piece.bytes;
    if (piece.staged == nullptr) continue;
    if (direction_ == Direction::FromPeer) {
      copy_bytes(piece.mine, piece.staged, piece.bytes, Stores::Cached);
    }
    give_back(way, piece);
  }
  return were_any;
}

}  // namespace rdmacoll
