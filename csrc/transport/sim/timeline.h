// SimTimeline: the virtual clock, the one source of chance, and what is going to happen. Equal
// seeds give equal runs. Floor: transport/sim. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "csrc/base/clock.h"

namespace rdmacoll {

class SimTimeline final : public Clock {
 public:
  explicit SimTimeline(uint64_t seed) : random_(seed) {}

  int64_t now_ns() const override { return now_ns_; }

  // 0 .. bound-1.
  uint64_t below(uint64_t bound) { return random_() % bound; }
  bool chance(double probability) { return below(1u << 20) < probability * (1u << 20); }
  // 1 .. most, now and then much longer: what is rarely late is rarely tested.
  int64_t delay_ns(int64_t most) {
    const int64_t scale = below(16) == 0 ? 8 : 1;
    return 1 + static_cast<int64_t>(below(static_cast<uint64_t>(most * scale)));
  }

  // Events of the same time happen in the order in which they were made.
  void at(int64_t time_ns, std::function<void()> event) {
    events_.emplace(std::pair(time_ns, next_id_++), std::move(event));
  }
  // The next event; false: there is none.
  bool step() {
    if (events_.empty()) return false;
    auto next = events_.extract(events_.begin());
    now_ns_ = next.key().first;
    next.mapped()();
    return true;
  }
  // All events until then, and the time itself.
  void advance(int64_t ns) {
    const int64_t until_ns = now_ns_ + ns;
    while (!events_.empty() && events_.begin()->first.first <= until_ns) step();
    now_ns_ = until_ns;
  }

 private:
  std::mt19937_64 random_;
  int64_t now_ns_ = 0;
  uint64_t next_id_ = 0;
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> events_;
};

}  // namespace rdmacoll
