// StoreChoice. Floor: engine. Thread: the driver.
#include "csrc/engine/store_choice.h"

#include <algorithm>
#include <bit>

namespace rdmacoll {

namespace {

std::optional<Stores> forced_by(const std::string& setting) {
  if (setting == "auto") return std::nullopt;
  return setting == "streamed" ? Stores::Streamed : Stores::Cached;
}

}  // namespace

StoreChoice::StoreChoice(const std::string& setting, const Clock& clock)
    : forced_(forced_by(setting)), clock_(clock) {}

StoreChoice::Kind& StoreChoice::kind(Collective collective, uint64_t bytes, bool in_heap) {
  const auto size = static_cast<uint32_t>(std::bit_width(bytes / kBytesMin) - 1);
  return kinds_[in_heap][static_cast<size_t>(collective)][std::min(size, kSizes - 1)];
}

Stores StoreChoice::begin(Collective collective, uint64_t bytes, bool in_heap) {
  trial_ = nullptr;
  if (forced_) return *forced_;
  if (bytes < kBytesMin) return Stores::Cached;
  Kind& kind = this->kind(collective, bytes, in_heap);
  const uint32_t number = kind.operations++ % kPeriod;
  if (number >= kTrials) return kind.best;
  trial_ = &kind;
  tried_ = number % 2 == 0 ? Stores::Cached : Stores::Streamed;
  bytes_ = bytes;
  busy_ns_ = 0;
  return tried_;
}

void StoreChoice::end() {
  if (trial_ == nullptr) return;
  const uint32_t number = (trial_->operations - 1) % kPeriod;
  double& least = trial_->ns_per_byte[static_cast<size_t>(tried_)];
  const double ns_per_byte = static_cast<double>(busy_ns_) / static_cast<double>(bytes_);
  least = number < 2 ? ns_per_byte : std::min(least, ns_per_byte);
  if (number + 1 == kTrials) {
    trial_->best =
        trial_->ns_per_byte[1] < trial_->ns_per_byte[0] ? Stores::Streamed : Stores::Cached;
  }
  trial_ = nullptr;
}

}  // namespace rdmacoll
