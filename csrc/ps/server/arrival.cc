// Arrival. Floor: ps/server. Thread: the server's.
#include "csrc/ps/server/arrival.h"

#include <algorithm>
#include <cstring>

namespace rdmacoll::ps {
namespace {

constexpr int64_t kAskAgainNs = 100'000'000;

}  // namespace

// It has its share when there is nothing more to be asked for. One that is full has enough.
void Arrival::turn() {
  if (!is_under_way_) return;
  const int64_t now_ns = state_.clock.now_ns();
  if (now_ns < look_again_ns_) return;
  look_again_ns_ = now_ns + kAskAgainNs;
  const std::vector<ServerId> others = servers_.for_backups();
  if (others.empty()) return;
  const auto may_back = [&](ServerId primary) {
    return std::ranges::find(others, primary) != others.end();
  };
  const Share share = share_of(state_.map, state_.me, state_.keeps_backups, may_back);
  if (state_.memory.is_full() || (share.offers.empty() && share.hand_over.empty())) {
    is_under_way_ = false;
    return;
  }
  ask(RecordKind::Offer, share.offers);
  ask(RecordKind::HandOver, share.hand_over);
}

void Arrival::ask(RecordKind kind, const BucketsOf& buckets) {
  for (const auto& [server, of_server] : buckets) {
    Calls* const calls = servers_.find(server);
    const auto bytes = static_cast<uint32_t>(of_server.size() * sizeof(of_server[0]));
    std::byte* const body = calls == nullptr ? nullptr : calls->room(bytes, 0);
    if (body == nullptr) continue;
    std::memcpy(body, of_server.data(), bytes);
    calls->make({.bytes = bytes, .kind = kind},
                {.ended = [](const Status&, std::span<const std::byte>) {}});
  }
}

}  // namespace rdmacoll::ps
