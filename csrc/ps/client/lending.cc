// Client: pushes of ranges whose values are not sent: servers read them in this process. Floor:
// ps/client. Thread: under the client's lock.
#include <algorithm>

#include "csrc/ps/client/client.h"

namespace rdmacoll::ps {

// What the primary is sent in the place of values that it can read where they are.
std::optional<LentValues> Client::lend(Errand& push, std::span<const float> values,
                                       const BucketMap::Place& place) {
  const auto lent = surroundings_.lent(place.primary, std::as_bytes(values));
  if (!lent) return std::nullopt;
  push.head.loan = lent->loan;
  push.lent = values;
  const bool backup_has_it = place.backup != kNoServer && is_reached(place.backup) &&
                             surroundings_.lent(place.backup, std::as_bytes(values)).has_value();
  return LentValues{
      .offset = lent->offset, .also = backup_has_it ? place.backup : kNoServer, .stay = 1};
}

// The same of a copy: one is enough for both servers.
Result<std::optional<LentValues>> Client::stage(Lock& lock, Errand& push,
                                                std::span<const float> values,
                                                const BucketMap::Place& place, const Limit& limit) {
  const auto room_now = [&] {
    const bool has_both = is_reached(place.primary) && is_reached(place.backup);
    return has_both ? surroundings_.stage(place.primary, place.backup, values.size_bytes())
                    : std::nullopt;
  };
  auto room = room_now();
  while (room && *room == nullptr) {
    RDMACOLL_RETURN_IF_ERROR(go_on(lock, limit));
    room = room_now();
  }
  if (!room) return std::optional<LentValues>();
  std::ranges::copy(values, room->get());
  push.keeps = *room;
  auto lent = lend(push, {room->get(), values.size()}, place);
  if (lent) lent->stay = 0;  // other pushes wait for the room
  return lent;
}

}  // namespace rdmacoll::ps
