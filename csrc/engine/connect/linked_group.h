// LinkedGroup: how the ranks of one group come to be linked, on this rank. Two that need each other
// meet as processes first (transports.h). Then each gives the other a room, and offers it its block
// with a note that says which (link_note.h); who has the other's offer opens the block, and the
// link is made. Either side may begin, and the other need not want it: it answers. One message each
// way. Who is not of the group any more answers that.
// Floor: engine/connect. Thread: under the linker's mutex.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/engine/connect/cards.h"
#include "csrc/engine/connect/link_note.h"
#include "csrc/engine/connect/path.h"
#include "csrc/engine/connect/rooms.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/plan/islands.h"

namespace rdmacoll {

class LinkedGroup {
 public:
  // The transports, the clock and the links outlive it. timeout_ms: how long a rank may take to be
  // met once it is wanted.
  LinkedGroup(Transports& transports, const Clock& clock, Rooms rooms, PeerLinks& links,
              int64_t timeout_ms);

  // From here on ranks can be met. The islands are by rank, too.
  void set_cards(Cards cards, const Islands& islands);
  // Somebody has offered this group a link.
  void hear(const Transports::Offer& offer);
  // A process has refused an offer, perhaps one of this group's: then its rank has left.
  void hear_refused(const Transports::Offer& offer);
  // A look at all that are under way; whether any were.
  bool turn();
  // Why the rank is not linked yet, by the last look at it.
  Status waits_for(uint32_t rank) const;
  // How the process of a rank is reached; nullopt: it is not known.
  std::optional<std::string> address_of(uint32_t rank) const {
    return cards_ ? std::optional(cards_->of(rank).address) : std::nullopt;
  }
  // Nobody is met any more. Takes the memory back from who has it not open yet (Withdraw), or
  // leaves it to those that were offered it.
  void leave(Release how);

  // Of those that are met.
  const std::map<uint32_t, Path>& paths() const { return paths_; }

 private:
  // A rank that is to be met.
  struct Attempt {
    int64_t until_ns = 0;
    int64_t look_for_calls_ns = 0;
    Status last{};                            // of its looks
    std::optional<Path> path{};               // once the processes have met
    std::optional<Rooms::Place> given{};      // and it was offered this rank's block
    std::vector<Transports::Offer> theirs{};  // of the block alone, if the room is not in it; and
                                              // of what the room is in

    bool is_answered() const;
  };
  Attempt& attempt_for(uint32_t rank);
  // Timeout: it is still under way.
  Status go_on(uint32_t rank, Attempt& attempt);
  Status meet(const std::string& address, Attempt& attempt);
  Status offer(const GroupRecord& card, Attempt& attempt);
  Result<Link> open(uint32_t rank, const GroupRecord& card, const Attempt& attempt);
  Status open_slab(const Attempt& attempt, Link* link);
  Status not_mapped(uint32_t rank, const Path& path) const;
  void close(const Link& link) const;
  static void decline(const std::vector<Transports::Offer>& offers);

  Transports& transports_;
  const Clock& clock_;
  Rooms rooms_;
  PeerLinks& links_;
  const int64_t timeout_ms_;
  std::optional<Cards> cards_;
  std::vector<bool> is_here_;  // by rank: of this rank's island
  std::map<uint32_t, Attempt> attempts_;
  std::map<uint32_t, Path> paths_;
};

}  // namespace rdmacoll
