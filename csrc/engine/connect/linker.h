// Linker: links the ranks of this process's groups to others when they need each other: those that
// its own groups want, and those that ask for it. It takes looks, and never waits; who waits for a
// link takes looks itself, and beside that a thread does (linker_thread.h), so that others are
// answered whatever this process is at.
// Floor: engine/connect. Thread: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/engine/connect/cards.h"
#include "csrc/engine/connect/link_guest.h"
#include "csrc/engine/connect/link_note.h"
#include "csrc/engine/connect/linked_group.h"
#include "csrc/engine/connect/rooms.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/memory/alarm_fd.h"
#include "csrc/plan/islands.h"

namespace rdmacoll {

class Linker {
 public:
  // The transports and the clock outlive it. alarm: it may be the transports', too.
  Linker(Transports& transports, const Clock& clock, std::shared_ptr<AlarmFd> alarm);
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  // What makes the driver do a round: some transports tell peers in it.
  void drive_by(std::function<void()> drive) { drive_ = std::move(drive); }

  // Who meets processes beside the groups; it outlives this.
  void host(LinkGuest& guest);

  // --- groups -----------------------------------------------------------------------------------
  // A token for a group that is to be; never kSessionToken.
  uint32_t new_token();
  // From here on others may ask for links to this rank of it. The links outlive its stay.
  void add(uint32_t token, Rooms rooms, PeerLinks& links, int64_t timeout_ms);
  // From here on this rank links to others.
  void set_cards(uint32_t token, Cards cards, const Islands& islands);
  // Of those that are linked, by rank.
  std::map<uint32_t, Path> paths(uint32_t token) const;
  // How the process of that rank is reached; nullopt: this rank does not know it.
  std::optional<std::string> address_of(uint32_t token, uint32_t rank) const;
  // Why this rank and that one are not linked yet.
  Status waits_for(uint32_t token, uint32_t rank) const;
  // Links nobody to it any more, and gives its memory back (LinkedGroup::leave).
  void remove(uint32_t token, Release how);

  // --- work -------------------------------------------------------------------------------------
  // One look at all that is under way. Whether anything was.
  bool turn();
  // Until turn() may find something that others have sent, or that is new, or for so long.
  void sleep(std::optional<std::chrono::microseconds> time) const;
  // Ends a sleep.
  void wake() const { alarm_->ring_in_ns(this, 0); }

 private:
  bool take_offers();
  void refuse(const Transports::Offer& offer);
  bool meet_callers();

  Transports& transports_;
  const Clock& clock_;
  const std::shared_ptr<AlarmFd> alarm_;
  std::function<void()> drive_;

  mutable std::mutex mutex_;  // what follows
  LinkGuest* guest_ = nullptr;
  uint32_t tokens_ = kSessionToken;
  std::map<uint32_t, std::unique_ptr<LinkedGroup>> groups_;  // by token
  std::map<Transports::Caller, Deadline> callers_;           // who are to be met
};

// Looks that follow one another, and the pauses between them: the longer, the longer nothing has
// come of them.
class LinkerTurns {
 public:
  // most: the longest pause; nullopt: until something comes, where nothing is under way.
  explicit LinkerTurns(Linker& linker, std::optional<std::chrono::microseconds> most)
      : linker_(linker), most_(most) {}
  // Takes a look, and sleeps until the next.
  void take();

  static constexpr std::chrono::microseconds kMost{2000};

 private:
  static constexpr std::chrono::microseconds kLeast{50};
  Linker& linker_;
  const std::optional<std::chrono::microseconds> most_;
  std::chrono::microseconds pause_ = kLeast;
};

}  // namespace rdmacoll
