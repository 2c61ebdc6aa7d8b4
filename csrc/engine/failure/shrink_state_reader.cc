// ShrinkStateReader. Floor: engine/failure. Thread: the driver.
#include "csrc/engine/failure/shrink_state_reader.h"

#include "csrc/base/check.h"

namespace rdmacoll {

ShrinkStateReader::ShrinkStateReader(const Clock& clock, const Layout& layout, const Region& block,
                                     const std::vector<Link>& links)
    : clock_(clock),
      world_(static_cast<uint32_t>(links.size())),
      reads_(layout.shrink_state(), block, links) {}

void ShrinkStateReader::begin(ShrinkStateRead op) {
  RDMACOLL_CHECK(!op_);
  op_ = std::move(op);
  asked_ = taken_ = 0;
}

bool ShrinkStateReader::advance(std::vector<Completion>& finished) {
  if (!op_) return false;
  bool moved = false;
  for (uint32_t place = 0; place < reads_.places(); ++place) {
    moved |= take(place);
    if (asked_ == op_->ranks.size() || !reads_.post(place, op_->ranks[asked_])) continue;
    ++asked_;
    take(place);
    moved = true;
  }
  const bool all = taken_ == op_->ranks.size();
  if (!all && clock_.now_ns() < op_->deadline_ns) return moved;
  end(Status(), finished);
  return true;
}

bool ShrinkStateReader::take(uint32_t place) {
  const std::byte* said = reads_.take(place);
  if (said == nullptr) return false;
  const uint32_t rank = reads_.peer(place);
  (*op_->found)[rank] = ShrinkState::read(said, rank, world_);
  ++taken_;
  return true;
}

void ShrinkStateReader::end(const Status& status, std::vector<Completion>& finished) {
  if (!op_) return;
  finished.push_back({std::move(op_->work), status});
  op_.reset();
  reads_.forget();
}

}  // namespace rdmacoll
