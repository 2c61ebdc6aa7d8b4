// StoreChoice. Floor: engine/channel. Thread: the driver.
#include "csrc/engine/channel/store_choice.h"

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
  const uint32_t length = row(bytes);
  const uint32_t number = kind.operations++ % (kRows * length);
  if (number >= 2 * length) return {.stores = kind.best};
  const Stores stores = number < length ? Stores::Cached : Stores::Streamed;
  const uint32_t behind = length - 1 - number % length;
  if (behind >= kTimed) return {.stores = stores};
  return {.stores = stores,
          .timed = &kind,
          .first = behind == kTimed - 1,
          .last = number + 1 == 2 * length,
          .bytes = bytes};
}

void StoreChoice::end(const Use& use) {
  if (use.timed == nullptr) return;
  double& least = use.timed->ns_per_byte[static_cast<size_t>(use.stores)];
  const double ns_per_byte = static_cast<double>(use.busy_ns) / static_cast<double>(use.bytes);
  least = use.first ? ns_per_byte : std::min(least, ns_per_byte);
  if (!use.last) return;
  const double* ns = use.timed->ns_per_byte;
  use.timed->best = ns[1] < ns[0] ? Stores::Streamed : Stores::Cached;
}

}  // namespace rdmacoll
