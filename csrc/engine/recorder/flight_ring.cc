// FlightRing. Floor: engine/recorder. Thread: see flight_ring.h.
#include "csrc/engine/recorder/flight_ring.h"

#include <algorithm>
#include <utility>

namespace rdmacoll {
namespace {

constexpr int kSlotsTried = 64;   // for one that is not in flight
constexpr int kReadsTried = 100;  // of a slot that is written at the time; then it is left out

uint64_t tail(int32_t tag, int peer, FlightState state) {
  return static_cast<uint32_t>(tag) | static_cast<uint64_t>(static_cast<uint16_t>(peer)) << 32 |
         static_cast<uint64_t>(state) << 48;
}
int32_t tag_of(uint64_t tail) { return static_cast<int32_t>(static_cast<uint32_t>(tail)); }
int16_t peer_of(uint64_t tail) { return static_cast<int16_t>(tail >> 32); }

}  // namespace

FlightRecord FlightRing::read(const Slot& slot) {
  const uint64_t what = slot.get(What);
  const uint64_t tail = slot.get(Tail);
  return {.sequence = slot.get(Sequence),
          .group = static_cast<uint32_t>(what),
          .kind = static_cast<uint8_t>(what >> 32),
          .algorithm = static_cast<uint8_t>(what >> 40),
          .dtype = static_cast<uint8_t>(what >> 48),
          .op = static_cast<uint8_t>(what >> 56),
          .bytes = slot.get(Bytes),
          .queued_ns = static_cast<int64_t>(slot.get(Queued)),
          .started_ns = static_cast<int64_t>(slot.get(Started)),
          .ended_ns = static_cast<int64_t>(slot.get(Ended)),
          .tag = tag_of(tail),
          .peer = peer_of(tail),
          .state = static_cast<FlightState>(tail >> 48)};
}

uint32_t FlightRing::next_free() {
  for (int tried = 0; tried < kSlotsTried; ++tried) {
    const size_t at = next_;
    next_ = next_ + 1 == size_ ? 0 : next_ + 1;
    const Slot& slot = slots_[at];
    const bool empty = slot.version.load(std::memory_order_relaxed) == 0;
    if (empty || slot.get(Ended) != 0) return static_cast<uint32_t>(at);
  }
  return kNone;
}

uint32_t FlightRing::add(const FlightRecord& record) {
  const uint32_t at = next_free();
  if (at == kNone) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return at;
  }
  Slot& slot = slots_[at];
  const uint64_t version = ++added_ * 8;
  slot.begin(version);
  slot.set(Sequence, record.sequence);
  slot.set(What, record.group | static_cast<uint64_t>(record.kind) << 32 |
                     static_cast<uint64_t>(record.algorithm) << 40 |
                     static_cast<uint64_t>(record.dtype) << 48 |
                     static_cast<uint64_t>(record.op) << 56);
  slot.set(Bytes, record.bytes);
  slot.set(Queued, static_cast<uint64_t>(record.queued_ns));
  slot.set(Started, 0);
  slot.set(Ended, 0);
  slot.set(Tail, tail(record.tag, record.peer, FlightState::Queued));
  slot.end(version);
  return at;
}

void FlightRing::start(uint32_t at, int64_t now_ns, int peer) {
  Slot& slot = slots_[at];
  const uint64_t version = slot.next_version();
  slot.begin(version);
  slot.set(Started, static_cast<uint64_t>(now_ns));
  slot.set(Tail, tail(tag_of(slot.get(Tail)), peer, FlightState::Running));
  slot.end(version);
}

void FlightRing::end(uint32_t at, int64_t now_ns, bool ok) {
  Slot& slot = slots_[at];
  const uint64_t version = slot.next_version();
  const uint64_t before = slot.get(Tail);
  slot.begin(version);
  slot.set(Ended, static_cast<uint64_t>(now_ns));
  slot.set(Tail,
           tail(tag_of(before), peer_of(before), ok ? FlightState::Done : FlightState::Failed));
  slot.end(version);
}

std::vector<FlightRecord> FlightRing::snapshot() const {
  std::vector<std::pair<uint64_t, FlightRecord>> found;
  found.reserve(size_);
  for (size_t at = 0; at < size_; ++at) {
    const Slot& slot = slots_[at];
    for (int tried = 0; tried < kReadsTried; ++tried) {
      const uint64_t before = slot.version.load(std::memory_order_acquire);
      if (before == 0) break;
      const FlightRecord record = read(slot);
      if (before % 2 == 1 || slot.version.load(std::memory_order_relaxed) != before) continue;
      found.emplace_back(before / 8, record);
      break;
    }
  }
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.first < b.first; });
  std::vector<FlightRecord> records;
  records.reserve(found.size());
  for (const auto& [number, record] : found) records.push_back(record);
  return records;
}

}  // namespace rdmacoll
