// Snapshot. Floor: remote. Thread: the driver.
#include "csrc/remote/snapshot.h"

#include <utility>

namespace rdmacoll {

Snapshot::Snapshot(LocalSlice mine, std::vector<MovedRange> parts, uint64_t version_bytes,
                   const Region& theirs, uint64_t offset, uint64_t newer_than,
                   std::shared_ptr<uint64_t> version)
    : mine_(mine),
      parts_(std::move(parts)),
      version_bytes_(version_bytes),
      theirs_(theirs),
      offset_(offset),
      newer_than_(newer_than),
      version_(std::move(version)) {
  *version_ = 0;
}

void Snapshot::let_go(const Way& way) {
  if (landing_) way.landings.give_back(*std::exchange(landing_, std::nullopt));
}

void Snapshot::begin(Step step) {
  step_ = step;
  if (step != Step::Data) {
    mover_ = Mover(Direction::FromPeer, *landing_, theirs_, offset_);
    return;
  }
  mover_ = Mover(Direction::FromPeer, mine_, theirs_,
                 offset_ + buffer_offset(reading_, version_bytes_), parts_);
}

Transfer::State Snapshot::advance(const Way& way) {
  if (!landing_) {
    landing_ = way.landings.take();
    if (!landing_) return State::Waits;
    begin(Step::Version);
  }
  bool moved = mover_.advance(way);
  while (mover_.is_done()) {
    if (!go_on()) {
      let_go(way);
      return State::Ended;
    }
    moved |= mover_.advance(way);
  }
  return moved ? State::Moved : State::Waits;
}

// A step is posted only when the one before it is done, as nothing orders them on their way.
bool Snapshot::go_on() {
  switch (step_) {
    case Step::Version:
      reading_ = landed().complete.load(std::memory_order_relaxed);
      if (reading_ <= newer_than_) return false;
      begin(Step::Data);
      return true;
    case Step::Data:
      begin(Step::Check);
      return true;
    case Step::Check:
      if (landed().begun.load(std::memory_order_relaxed) < reading_ + 2) {
        *version_ = reading_;
        return false;
      }
      begin(Step::Version);
      return true;
  }
  return false;
}

}  // namespace rdmacoll
