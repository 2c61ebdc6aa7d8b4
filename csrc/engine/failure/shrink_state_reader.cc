// ShrinkStateReader. Floor: engine/failure. Thread: the driver.
#include "csrc/engine/failure/shrink_state_reader.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"

namespace rdmacoll {

ShrinkStateReader::ShrinkStateReader(const Clock& clock, const Layout& layout, const Region& block,
                                     const std::vector<Link>& links)
    : clock_(clock),
      layout_(layout),
      block_(block),
      links_(links),
      places_(layout.shrink_state_places()) {}

std::byte* ShrinkStateReader::bytes_of(size_t place) const {
  return block_.base + layout_.seen_shrink_state(static_cast<uint32_t>(place));
}

void ShrinkStateReader::begin(ShrinkStateRead op) {
  RDMACOLL_CHECK(!op_);
  op_ = std::move(op);
  asked_ = 0;
}

bool ShrinkStateReader::advance(std::vector<Completion>& finished) {
  if (!op_) return false;
  bool moved = false;
  bool reading = false;
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (place.pending && place.ticket.done()) {
      take(i);
      moved = true;
    }
    if (!place.pending && asked_ < op_->ranks.size()) moved |= post(i);
    reading |= place.pending && place.counts;
  }
  const bool all = asked_ == op_->ranks.size() && !reading;
  if (!all && clock_.now_ns() < op_->deadline_ns) return moved;
  end(Status(), finished);
  return true;
}

// Reads what the next rank says. A dead one's get may be over at once, with nothing read.
bool ShrinkStateReader::post(size_t index) {
  Place& place = places_[index];
  const uint32_t rank = op_->ranks[asked_];
  const Link& link = links_[rank];
  std::memset(bytes_of(index), 0, kShrinkStateBytes);
  Ticket ticket;
  const Posted posted = link.read(layout_.shrink_state(), kShrinkStateBytes, block_,
                                  layout_.seen_shrink_state(static_cast<uint32_t>(index)), &ticket);
  if (posted == Posted::Full) return false;
  place = {.pending = true, .counts = true, .rank = rank, .ticket = ticket};
  ++asked_;
  if (posted == Posted::Done) take(index);
  return true;
}

void ShrinkStateReader::take(size_t index) {
  Place& place = places_[index];
  place.pending = false;
  if (!place.counts) return;
  (*op_->found)[place.rank] =
      ShrinkState::read(bytes_of(index), place.rank, static_cast<uint32_t>(links_.size()));
}

void ShrinkStateReader::end(const Status& status, std::vector<Completion>& finished) {
  if (!op_) return;
  finished.push_back({std::move(op_->work), status});
  op_.reset();
  for (Place& place : places_) place.counts = false;
}

}  // namespace rdmacoll
