// Comparison. Floor: engine/failure.
#include "csrc/engine/failure/comparison.h"

#include <algorithm>

namespace rdmacoll {
namespace {

// Before peers are asked, and before they are asked again: long compared with an operation, short
// compared with a timeout.
constexpr int64_t kCompareNs = 200'000'000;

}  // namespace

std::optional<uint32_t> Comparison::look(const CollectiveCall& mine, int64_t started_ns,
                                         int64_t now_ns,
                                         const std::function<bool(uint32_t)>& waits_for) {
  const bool asked = asked_about_ == mine.sequence;
  if (now_ns - (asked ? asked_ns_ : started_ns) >= kCompareNs && call_logs_.done()) {
    ask(now_ns, waits_for);
    asked_about_ = mine.sequence;
  }
  if (asked_about_ != mine.sequence || !call_logs_.done()) return std::nullopt;
  return call_logs_.differing(mine);
}

void Comparison::ask(int64_t now_ns, const std::function<bool(uint32_t)>& waits_for) {
  asked_.clear();
  for (uint32_t peer = 0; peer < world_; ++peer) {
    if (waits_for(peer)) asked_.push_back(peer);
  }
  if (asked_.size() > kMaxCallLogsRead) {  // as not all can be asked at once, ask others each time
    const auto by = static_cast<size_t>(now_ns / kCompareNs) * kMaxCallLogsRead % asked_.size();
    std::rotate(asked_.begin(), asked_.begin() + static_cast<ptrdiff_t>(by), asked_.end());
  }
  call_logs_.begin(asked_);
  asked_ns_ = now_ns;
}

}  // namespace rdmacoll
