// MemberStatus: the inline data of its line. Floor: engine/channel.
#include "csrc/engine/channel/member_status.h"

#include <cstring>

namespace rdmacoll {
namespace {

struct Wire {
  uint16_t reason;
  uint16_t lost;  // or kNobody
  char cause[40];
};
static_assert(sizeof(Wire) <= kInlineBytes);
constexpr uint16_t kNobody = UINT16_MAX;
static_assert(kMaxWorld < kNobody);

}  // namespace

Posted MemberStatus::publish(const Link& peer, uint64_t line) const {
  Wire wire{static_cast<uint16_t>(reason), static_cast<uint16_t>(lost.value_or(kNobody)), {}};
  cause.copy(wire.cause, sizeof(wire.cause));
  Header header;
  header.inline_bytes = sizeof(wire);
  std::memcpy(header.inline_data, &wire, sizeof(wire));
  return peer.transport->signal(peer.peer, kOrderedChannel, {peer.slab.id, line, kLineBytes}, 1,
                                header);
}

std::optional<MemberStatus> MemberStatus::read(const std::byte* line, uint32_t world) {
  if (!is_in(line)) return std::nullopt;
  Wire wire;
  std::memcpy(&wire, reinterpret_cast<const Line*>(line)->inline_data, sizeof(wire));
  const bool left = wire.reason == static_cast<uint16_t>(ExitReason::Left);
  MemberStatus status{.reason = left ? ExitReason::Left : ExitReason::Failed};
  if (wire.lost < world) status.lost = wire.lost;
  status.cause.assign(wire.cause, strnlen(wire.cause, sizeof(wire.cause)));
  return status;
}

}  // namespace rdmacoll
