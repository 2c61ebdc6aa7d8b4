// LinkedGroup. Floor: engine/connect. Thread: see linked_group.h.
#include "csrc/engine/connect/linked_group.h"

#include <algorithm>
#include <utility>

#include "csrc/engine/work/call.h"

namespace rdmacoll {

LinkedGroup::LinkedGroup(Transports& transports, const Clock& clock, Rooms rooms, PeerLinks& links,
                         int64_t timeout_ms)
    : transports_(transports),
      clock_(clock),
      rooms_(std::move(rooms)),
      links_(links),
      timeout_ms_(timeout_ms) {}

void LinkedGroup::set_cards(Cards cards, const Islands& islands) {
  cards_.emplace(std::move(cards));
  for (uint32_t rank = 0; rank < islands.world(); ++rank) {
    is_here_.push_back(islands.share(links_.rank(), rank));
  }
}

LinkedGroup::Attempt& LinkedGroup::attempt_for(uint32_t rank) {
  const auto [found, is_new] = attempts_.try_emplace(rank);
  if (is_new) {
    const int64_t now_ns = clock_.now_ns();
    found->second.until_ns = now_ns + timeout_ms_ * 1'000'000;
    found->second.look_for_calls_ns = now_ns + kLookForCallsNs;
  }
  return found->second;
}

bool LinkedGroup::Attempt::is_answered() const {
  return !theirs.empty() && LinkNote::unpack(theirs.back().note).room != kOwnRoom;
}

// What makes no sense is forgotten: its sender has a deadline.
void LinkedGroup::hear(const Transports::Offer& offer) {
  const uint32_t rank = LinkNote::unpack(offer.note).rank;
  if (rank >= links_.world() || rank == links_.rank() || links_.at(rank) != nullptr) return;
  Attempt& attempt = attempt_for(rank);
  if (!attempt.is_answered()) attempt.theirs.push_back(offer);
}

// It sends this rank's note back. The rank may have answered before it left, so it may be linked.
void LinkedGroup::hear_refused(const Transports::Offer& offer) {
  const LinkNote mine = LinkNote::unpack(offer.note);
  const auto is_meant = [&](uint32_t rank, const Path& path) {
    return path.transport == offer.transport && path.peer == offer.peer &&
           cards_->of(rank).token == mine.token;
  };
  if (!cards_ || mine.rank != links_.rank()) return;
  const Status left(StatusCode::PeerFailed, "it has left the group");
  std::erase_if(attempts_, [&](const auto& under_way) {
    const auto& [rank, attempt] = under_way;
    if (!attempt.path || !is_meant(rank, *attempt.path)) return false;
    decline(attempt.theirs);
    links_.fail(rank, left);
    return true;
  });
  for (const auto& [rank, path] : paths_) {
    if (is_meant(rank, path)) links_.fail(rank, left);
  }
}

bool LinkedGroup::turn() {
  if (!cards_) return false;
  for (const uint32_t rank : links_.take_wanted()) {
    if (links_.at(rank) == nullptr) attempt_for(rank);
  }
  const bool were_any = !attempts_.empty();
  for (auto under_way = attempts_.begin(); under_way != attempts_.end();) {
    auto& [rank, attempt] = *under_way;
    attempt.last = go_on(rank, attempt);
    const bool is_in_time = clock_.now_ns() < attempt.until_ns;
    if (attempt.last.code() == StatusCode::Timeout && is_in_time) {
      ++under_way;
      continue;
    }
    if (!attempt.last.ok()) {
      decline(attempt.theirs);
      links_.fail(rank, attempt.last);
    }
    under_way = attempts_.erase(under_way);
  }
  return were_any;
}

Status LinkedGroup::waits_for(uint32_t rank) const {
  const auto found = attempts_.find(rank);
  return found == attempts_.end() ? Status() : found->second.last;
}

Status LinkedGroup::go_on(uint32_t rank, Attempt& attempt) {
  const GroupRecord card = cards_->of(rank);
  if (!attempt.path) RDMACOLL_RETURN_IF_ERROR(meet(card.address, attempt));
  RDMACOLL_RETURN_IF_ERROR(attempt.path->transport->peer_status(attempt.path->peer));
  RDMACOLL_RETURN_IF_ERROR(transports_.key_over(*attempt.path, card.key).status());
  if (!attempt.given) RDMACOLL_RETURN_IF_ERROR(offer(card, attempt));
  if (!attempt.is_answered()) {
    return Status(StatusCode::Timeout, "its process was met over " +
                                           attempt.path->transport->info().name +
                                           ", but it did not answer about the group in time");
  }
  auto link = open(rank, card, attempt);
  if (!link.ok()) return link.status();
  paths_.emplace(rank, *attempt.path);
  links_.add(rank, link.value());
  return Status();
}

// Over the transport of its offer, if that is here.
Status LinkedGroup::meet(const std::string& address, Attempt& attempt) {
  const bool for_calls = clock_.now_ns() >= attempt.look_for_calls_ns;
  if (for_calls) attempt.look_for_calls_ns = clock_.now_ns() + kLookForCallsNs;
  const Transport* over = attempt.theirs.empty() ? nullptr : attempt.theirs.front().transport;
  auto path = transports_.look(address, for_calls, over);
  if (!path.ok()) return path.status();
  if (over != nullptr && path.value().peer != attempt.theirs.front().peer) {
    return Status(StatusCode::Mismatch, "another process has answered in its name");
  }
  attempt.path = path.take();
  return Status();
}

Status LinkedGroup::offer(const GroupRecord& card, Attempt& attempt) {
  auto given = rooms_.give();
  if (!given.ok()) return given.status();
  const Path& path = *attempt.path;
  const Rooms::Place& place = given.value();
  LinkNote note{card.token, static_cast<uint16_t>(links_.rank()), kOwnRoom};
  RDMACOLL_RETURN_IF_ERROR(transports_.offer_heap(path));
  const RegionId block = rooms_.block().id;
  if (place.slab.id != block) {
    RDMACOLL_RETURN_IF_ERROR(transports_.offer_region(path, block, note.pack()));
  }
  note.room = place.number;
  RDMACOLL_RETURN_IF_ERROR(transports_.offer_region(path, place.slab.id, note.pack()));
  attempt.given = place;
  return Status();
}

Result<Link> LinkedGroup::open(uint32_t rank, const GroupRecord& card, const Attempt& attempt) {
  const Path& path = *attempt.path;
  const Deadline now = Deadline::after_ms(clock_, 0);
  auto opened = transports_.open_region(path, card.key, now);
  if (!opened.ok()) return opened.status();
  Link link{.transport = path.transport, .peer = path.peer, .block = opened.take()};
  Status status;
  if (link.block.id != card.region || link.block.bytes < rooms_.layout().block_bytes()) {
    status = Status(StatusCode::InvalidArgument,
                    "it names as its block a region that is not open or has fewer than " +
                        std::to_string(rooms_.layout().block_bytes()) + " bytes");
  } else if (!link.is_mapped() && is_here_[rank]) {
    status = not_mapped(rank, path);
  } else {
    status = open_slab(attempt, &link);
  }
  auto heap = status.ok() ? transports_.open_heap(path, now) : status;
  if (!heap.ok()) {
    close(link);
    return heap.status();
  }
  link.own_slab = attempt.given->slab;
  link.own_room = attempt.given->room;
  link.heap = heap.value();
  link.maps_mine = transports_.heap_is_mapped_by(path);
  return link;
}

// The one with this rank's room.
Status LinkedGroup::open_slab(const Attempt& attempt, Link* link) {
  const Transports::Offer& offer = attempt.theirs.back();
  const uint32_t room = LinkNote::unpack(offer.note).room;
  link->slab = link->block;
  link->room = rooms_.room_of(room);
  if (rooms_.slab_of(room) == 0) return Status();
  auto slab = link->transport->open_region(link->peer, offer.key, Deadline::after_ms(clock_, 0));
  if (!slab.ok()) return slab.status();
  link->slab = slab.take();
  if (link->slab.bytes >= rooms_.layout().slab_bytes()) return Status();
  return Status(StatusCode::InvalidArgument, "it has offered a slab that is too small");
}

// The plans of all ranks go by the islands, so no rank can make an exception for one pair.
Status LinkedGroup::not_mapped(uint32_t rank, const Path& path) const {
  const std::string& name = path.transport->info().name;
  return Status(StatusCode::Unsupported,
                rank_name(links_.rank()) + " and " + rank_name(rank) +
                    " are of one host, container and user, so all ranks count on it that they "
                    "map each other's memory; but " +
                    rank_name(rank) + " is reached over " + name + ", which does not map it (" +
                    path.reason +
                    "): set RDMACOLL_HOST_ID to another value on one of the two, or "
                    "RDMACOLL_TRANSPORT to " +
                    name + " on all ranks");
}

void LinkedGroup::close(const Link& link) const {
  link.transport->close_region(link.peer, link.block.id);
  const bool has_slab = link.slab.id != kNoRegion && link.slab.id != link.block.id;
  if (has_slab) link.transport->close_region(link.peer, link.slab.id);
}

void LinkedGroup::decline(const std::vector<Transports::Offer>& offers) {
  for (const auto& offer : offers)
    offer.transport->close_region(offer.peer, offer.region, offer.key);
}

// An owner that has the group keeps its memory until this rank has closed it. So all is closed
// here, also what was offered and not opened. This comes after the withdrawal: so one of two ranks
// always sees what the other does (docs/TRANSPORTS.md, "Region ids").
void LinkedGroup::leave(Release how) {
  if (how == Release::Withdraw) rooms_.release(how);
  for (const auto& [rank, attempt] : attempts_) decline(attempt.theirs);
  for (const auto& [rank, path] : paths_) close(links_.at(rank)->link);
  if (how == Release::Keep) rooms_.release(how);
}

}  // namespace rdmacoll
