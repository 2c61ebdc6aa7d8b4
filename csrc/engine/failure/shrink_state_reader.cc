// ShrinkStateReader. Floor: engine/failure. Thread: the driver.
#include "csrc/engine/failure/shrink_state_reader.h"

#include <algorithm>

#include "csrc/base/check.h"

namespace rdmacoll {

ShrinkStateReader::ShrinkStateReader(const Clock& clock, PeerLinks& links)
    : clock_(clock), links_(links), reads_(links.layout().shrink_state(), links) {}

void ShrinkStateReader::begin(ShrinkStateRead op) {
  RDMACOLL_CHECK(!op_);
  op_ = std::move(op);
  unasked_ = op_->ranks;
  awaited_ = 0;
  for (const uint32_t rank : unasked_) links_.want(rank);
}

bool ShrinkStateReader::advance(std::vector<Completion>& finished) {
  if (!op_) return false;
  bool moved = false;
  for (uint32_t place = 0; place < reads_.places(); ++place) {
    moved |= take(place);
    if (!ask(place)) continue;
    take(place);
    moved = true;
  }
  forget_unreachable();
  const bool all = unasked_.empty() && awaited_ == 0;
  if (!all && clock_.now_ns() < op_->deadline_ns) return moved;
  end(Status(), finished);
  return true;
}

// Whether somebody's words are on their way to the place from now on.
bool ShrinkStateReader::ask(uint32_t place) {
  const auto asked = std::find_if(unasked_.begin(), unasked_.end(), [&](uint32_t rank) {
    return links_.at(rank) != nullptr && reads_.post(place, rank);
  });
  if (asked == unasked_.end()) return false;
  unasked_.erase(asked);
  ++awaited_;
  return true;
}

bool ShrinkStateReader::take(uint32_t place) {
  const std::byte* said = reads_.take(place);
  if (said == nullptr) return false;
  const uint32_t rank = reads_.peer(place);
  (*op_->found)[rank] = ShrinkState::read(said, rank, links_.world());
  --awaited_;
  return true;
}

void ShrinkStateReader::forget_unreachable() {
  std::erase_if(unasked_, [&](uint32_t rank) {
    return links_.at(rank) == nullptr && !links_.failure_of(rank).ok();
  });
}

void ShrinkStateReader::end(const Status& status, std::vector<Completion>& finished) {
  if (!op_) return;
  finished.push_back({std::move(op_->work), status});
  op_.reset();
  reads_.forget();
}

}  // namespace rdmacoll
