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

StoreChoice::Use StoreChoice::begin(Collective collective, uint64_t bytes, bool in_heap) {
  return begin(collectives_[in_heap][static_cast<size_t>(collective)], bytes);
}

StoreChoice::Use StoreChoice::begin_message(uint64_t bytes) { return begin(messages_, bytes); }

StoreChoice::Use StoreChoice::begin(Sizes& kinds, uint64_t bytes) {
  if (forced_) return {.stores = *forced_};
  if (bytes < kBytesMin) return {};
  const auto size = static_cast<uint32_t>(std::bit_width(bytes / kBytesMin) - 1);
  Kind& kind = kinds[std::min(size, kSizes - 1)];
  const uint32_t number = kind.operations++ % kPeriod;
  if (number >= kTrials) return {.stores = kind.best};
  return {.stores = number % 2 == 0 ? Stores::Cached : Stores::Streamed,
          .trial = &kind,
          .number = number,
          .bytes = bytes};
}

void StoreChoice::end(const Use& use) {
  if (use.trial == nullptr) return;
  double& least = use.trial->ns_per_byte[static_cast<size_t>(use.stores)];
  const double ns_per_byte = static_cast<double>(use.busy_ns) / static_cast<double>(use.bytes);
  least = use.number < 2 ? ns_per_byte : std::min(least, ns_per_byte);
  if (use.number + 1 < kTrials) return;
  const double* ns = use.trial->ns_per_byte;
  use.trial->best = ns[1] < ns[0] ? Stores::Streamed : Stores::Cached;
}

}  // namespace rdmacoll
