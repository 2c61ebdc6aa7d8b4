// Shrinking. Floor: engine. Thread: one at a time.
#include "csrc/engine/shrinking.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "csrc/base/limits.h"
#include "csrc/engine/work/call.h"

namespace rdmacoll {
namespace {

// How long one round of reading may take; who could not be read by then is asked again.
constexpr int64_t kReadNs = 1'000'000'000;
// Between two looks at what others say, while they say nothing new.
constexpr std::chrono::microseconds kShortestPause(100);
constexpr std::chrono::microseconds kLongestPause(5000);

}  // namespace

Shrinking::Shrinking(Group& group, Transports& transports, Linker& linker, Progress& progress,
                     const Clock& clock, Config config, Make make)
    : group_(group),
      transports_(transports),
      linker_(linker),
      progress_(progress),
      clock_(clock),
      config_(std::move(config)),
      make_(std::move(make)),
      excluded_(group.members().world()) {}

Shrinking::~Shrinking() {
  if (setup_) setup_->give_up();
}

Result<ShrinkResult> Shrinking::run(std::span<const int> excluded, int64_t timeout_ms,
                                    const InterruptCheck& interrupt) {
  const std::unique_lock lock(running_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return Status(StatusCode::InvalidArgument, "another thread of this rank shrinks the group");
  }
  const Deadline deadline = Deadline::after_ms(clock_, timeout_ms);
  RDMACOLL_RETURN_IF_ERROR(exclude(excluded));
  auto pause = kShortestPause;
  while (true) {
    const WorkPtr reading = read();
    Work* const works[] = {reading.get()};
    progress_.notify({.caller_waits = true});
    RDMACOLL_RETURN_IF_ERROR(progress_.wait(works, -1, interrupt));
    auto turn = consider();
    if (!turn.ok()) return turn.status();
    if (turn.value() == Turn::Over) return take();
    const bool moved = turn.value() == Turn::Moved;
    pause = moved ? kShortestPause : std::min(2 * pause, kLongestPause);
    if (moved) continue;
    if (deadline.passed(clock_)) {
      return Status(StatusCode::Timeout, "no smaller group after " + std::to_string(timeout_ms) +
                                             " ms: " + missing() +
                                             "; name them in ranks_to_exclude, or call it again to "
                                             "wait for them");
    }
    std::this_thread::sleep_for(pause);
    RDMACOLL_RETURN_IF_ERROR(interrupt ? interrupt() : Status());
  }
}

// All that stay read what all of them say.
Status Shrinking::may_be_made_of(const RankSet& excluded) const {
  const auto staying = std::count(excluded.begin(), excluded.end(), false);
  if (staying <= static_cast<int64_t>(kMaxPeers)) return Status();
  return Status(StatusCode::Unsupported,
                "a group can be shrunk to " + std::to_string(kMaxPeers) + " ranks at most, and " +
                    std::to_string(staying) +
                    " would stay of this one; destroy it, and make a new group");
}

Status Shrinking::exclude(std::span<const int> ranks) {
  RDMACOLL_RETURN_IF_ERROR(failure_);
  if (stage_ == ShrinkStage::Decided) {
    return Status(StatusCode::InvalidArgument,
                  "the group has been shrunk already; shrink the one that came of it");
  }
  RankSet excluded = excluded_;
  for (const int rank : ranks) {
    const bool own = rank == static_cast<int>(members().rank());
    if (rank < 0 || rank >= static_cast<int>(world()) || own) {
      return Status(StatusCode::InvalidArgument,
                    "ranks_to_exclude names rank " + std::to_string(rank) +
                        (own ? ", which is this one; only those that stay call it"
                             : "; the group has ranks 0 to " + std::to_string(world() - 1)));
    }
    excluded[static_cast<size_t>(rank)] = true;
  }
  RDMACOLL_RETURN_IF_ERROR(may_be_made_of(excluded));
  if (excluded != excluded_) return begin_anew(std::move(excluded));
  return say(stage_);
}

WorkPtr Shrinking::read() {
  if (reading_ != nullptr) return reading_;
  gone_.resize(world());
  found_.resize(world());
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < world(); ++rank) {
    if (!is_member(rank)) continue;
    // Before it is read: who decides and leaves at once has said so when it is seen to be gone.
    gone_[rank] = members().is_gone(rank);
    found_[rank].reset();
    ranks.push_back(rank);
  }
  reading_ = std::make_shared<Work>();
  group_.submit(ShrinkStateRead{reading_, std::move(ranks), &found_, clock_.now_ns() + kReadNs});
  return reading_;
}

Result<Shrinking::Turn> Shrinking::consider() {
  RDMACOLL_RETURN_IF_ERROR(failure_);
  const WorkPtr reading = std::move(reading_);
  RDMACOLL_RETURN_IF_ERROR(reading->status());
  auto adopted = adopt_decision();
  if (!adopted.ok()) return adopted.status();
  if (adopted.value()) return Turn::Over;
  auto excluded = whom_to_exclude();
  if (!excluded.ok()) return fail(excluded.status());
  if (excluded.value() != excluded_) {
    RDMACOLL_RETURN_IF_ERROR(begin_anew(excluded.take()));
    return Turn::Moved;
  }
  auto moved = go_on();
  if (!moved.ok()) return moved.status();
  if (stage_ == ShrinkStage::Decided) return Turn::Over;
  return moved.value() ? Turn::Moved : Turn::Waiting;
}

Status Shrinking::excluded_by(uint32_t rank) const {
  return Status(StatusCode::Aborted,
                rank_name(rank) + " makes a smaller group without this rank, " +
                    rank_name(members().rank()) +
                    ": it was named in ranks_to_exclude, or could not be reached; it has no part "
                    "in the new group");
}

Result<bool> Shrinking::adopt_decision() {
  for (uint32_t rank = 0; rank < world(); ++rank) {
    if (!is_member(rank) || !found_[rank] || found_[rank]->stage != ShrinkStage::Decided) continue;
    const RankSet& decided = found_[rank]->excluded;
    if (decided[members().rank()]) return fail(excluded_by(rank));  // be it gone by now
    const auto mine = std::find_if(made_.begin(), made_.end(),
                                   [&](const auto& made) { return made.first == decided; });
    if (mine == made_.end()) {
      return fail(Status(StatusCode::Mismatch, rank_name(rank) +
                                                   " says that all have made a group that "
                                                   "this rank has not made"));
    }
    excluded_ = decided;
    result_ = std::move(mine->second);
    RDMACOLL_RETURN_IF_ERROR(say(ShrinkStage::Decided));
    made_.clear();
    return true;
  }
  return false;
}

Result<RankSet> Shrinking::whom_to_exclude() const {
  RankSet excluded = excluded_;
  for (uint32_t rank = 0; rank < world(); ++rank) {
    if (rank == members().rank() || excluded[rank]) continue;
    const std::optional<ShrinkState>& said = found_[rank];
    if (gone_[rank] || (said && said->stage == ShrinkStage::Declined)) {
      excluded[rank] = true;
    } else if (said && said->excluded[members().rank()]) {
      return excluded_by(rank);
    } else if (said) {
      for (uint32_t r = 0; r < world(); ++r) excluded[r] = excluded[r] || said->excluded[r];
    }
  }
  return excluded;
}

bool Shrinking::is_with_me(uint32_t rank) const {
  const std::optional<ShrinkState>& said = found_[rank];
  return said && said->excluded == excluded_ && said->stage >= stage_;
}

Result<bool> Shrinking::go_on() {
  for (uint32_t rank = 0; rank < world(); ++rank) {
    if (is_member(rank) && !is_with_me(rank)) return false;
  }
  const bool opens = stage_ == ShrinkStage::Offered;
  const Status moved = next_stage();
  if (moved.ok()) return true;
  // Who opens waits while not all are linked, and also where one has taken its memory back: that
  // says by then why, as it has begun anew, or declined.
  const bool is_not_yet =
      moved.code() == StatusCode::Timeout || moved.code() == StatusCode::PeerFailed;
  not_yet_ = moved;
  if (opens && is_not_yet) return false;
  // One that has gone since will be excluded next time. Anything else only this rank knows.
  for (uint32_t rank = 0; rank < world(); ++rank) {
    if (is_member(rank) && members().is_gone(rank)) return false;
  }
  return fail(moved);
}

Status Shrinking::next_stage() {
  switch (stage_) {
    case ShrinkStage::Agreeing:
      RDMACOLL_RETURN_IF_ERROR(make_ready());
      return say(ShrinkStage::Ready);
    case ShrinkStage::Ready:
      RDMACOLL_RETURN_IF_ERROR(make_group());
      return say(ShrinkStage::Offered);
    case ShrinkStage::Offered: {
      auto made = setup_->finish(Deadline::after_ms(clock_, 0));
      if (!made.ok()) return made.status();
      setup_.reset();
      made_.emplace_back(excluded_, make_(made.take(), excluded_));
      return say(ShrinkStage::Made);
    }
    case ShrinkStage::Made:
      result_ = std::move(made_.back().second);
      RDMACOLL_RETURN_IF_ERROR(say(ShrinkStage::Decided));
      made_.clear();
      return Status();
    case ShrinkStage::Decided:
    case ShrinkStage::Declined:
      break;  // exclude() refuses
  }
  return Status();
}

Status Shrinking::make_ready() {
  const auto [rank, size] = place();
  auto begun = GroupSetup::begin(transports_, linker_, clock_, config_,
                                 members().layout().shrunk(size), rank, size);
  if (!begun.ok()) return begun.status();
  setup_.emplace(begun.take());
  return Status();
}

Status Shrinking::make_group() {
  const auto [rank, size] = place();
  return setup_->meet(records(), first_to_meet(rank, size));
}

// This rank, and how many they are, in the new group.
std::pair<uint32_t, uint32_t> Shrinking::place() const {
  uint32_t rank = 0, size = 0;
  for (uint32_t r = 0; r < world(); ++r) {
    if (excluded_[r]) continue;
    if (r < members().rank()) ++rank;
    ++size;
  }
  return {rank, size};
}

std::vector<std::string> Shrinking::records() const {
  std::vector<std::string> records;
  for (uint32_t rank = 0; rank < world(); ++rank) {
    if (rank == members().rank()) records.push_back(setup_->record());
    if (is_member(rank)) records.push_back(found_[rank]->record);
  }
  return records;
}

Status Shrinking::begin_anew(RankSet excluded) {
  if (setup_) setup_->give_up();
  setup_.reset();
  excluded_ = std::move(excluded);
  return say(ShrinkStage::Agreeing);
}

Status Shrinking::say(ShrinkStage stage) {
  stage_ = stage;
  const bool declines = stage == ShrinkStage::Declined;  // maybe as its record is too long
  const ShrinkState state{.rank = members().rank(),
                          .stage = stage,
                          .excluded = excluded_,
                          .record = declines || !setup_ ? "" : setup_->record()};
  return state.publish(members().block().base + members().layout().shrink_state().own);
}

// Says so first: who finds the memory taken back reads why.
Status Shrinking::fail(Status status) {
  RDMACOLL_RETURN_IF_ERROR(say(ShrinkStage::Declined));
  if (setup_) setup_->give_up();
  setup_.reset();
  made_.clear();
  return failure_ = std::move(status);
}

ShrinkResult Shrinking::take() {
  ShrinkResult smaller{std::move(result_), {}};
  for (uint32_t rank = 0; rank < world(); ++rank) {
    if (!excluded_[rank]) smaller.ranks.push_back(static_cast<int>(rank));
  }
  return smaller;
}

std::string Shrinking::missing() const {
  std::string words;
  for (uint32_t rank = 0; rank < world(); ++rank) {
    if (!is_member(rank) || is_with_me(rank)) continue;
    words += (words.empty() ? "" : "; ") + rank_name(rank) +
             (found_[rank] ? " has not gone on with it" : " has not called it");
  }
  return words.empty() ? "all have gone on with it, but " + not_yet_.message() : words;
}

}  // namespace rdmacoll
