// Sessions: how one ends: its process has ended, or neither of the two uses it. Who does not use it
// says so, and the other says the same (Close), or that it does (Keep). Two who say so at once
// agree, too. After its word to close a process does nothing there that matters if the other
// agrees, and who looks for the session waits for the answer; then, if need be, it begins another.
// Floor: engine/session. Thread: see sessions.h.
#include <algorithm>

#include "csrc/engine/session/sessions.h"

namespace rdmacoll {
namespace {

// How long nobody uses a session that is closed: to begin another takes a thousandth of it.
constexpr int64_t kIdleNs = 10'000'000'000;
constexpr int64_t kLookForIdleNs = kIdleNs / 4;

}  // namespace

void Sessions::close_idle() {
  const int64_t now_ns = clock_.now_ns();
  if (now_ns < look_for_idle_ns_.load()) return;
  look_for_idle_ns_.store(now_ns + kLookForIdleNs);
  bool has_said = false;
  known_.each([&](KnownSession& known) {
    if (known.state != KnownSession::State::Open || known.idle_ns(now_ns) < kIdleNs) return;
    if (!known.session()->say_close()) return;
    known.state = KnownSession::State::Asks;
    has_said = true;
  });
  if (has_said) note_new();
}

void Sessions::hear_close(KnownSession& known) {
  if (known.state == KnownSession::State::Closed) return;
  const bool agrees = known.state == KnownSession::State::Asks ||
                      (!known.is_used() && known.session()->say_close());
  if (agrees) return close(known);
  known.session()->say_keep();
  known.note_use(clock_.now_ns());
}

void Sessions::hear_keep(KnownSession& known) {
  if (known.state != KnownSession::State::Asks) return;
  known.state = KnownSession::State::Open;
  known.note_use(clock_.now_ns());
}

// The driver sends what is still to be said, and lets go of it.
void Sessions::close(KnownSession& known) {
  known.state = KnownSession::State::Closed;
  known.session()->close();
  note_new();
}

// Whether an offer of memory for a session with that peer makes sense. The peer has no session with
// this process: so if this one has asked for the end of theirs, that was the answer.
bool Sessions::may_begin_anew(const Peer& peer) {
  KnownSession* const known = known_.find(peer);
  if (known != nullptr && known->state == KnownSession::State::Asks) close(*known);
  return known == nullptr || known->state == KnownSession::State::Closed;
}

// Their memory is given back in the order that docs/TRANSPORTS.md, "Region ids", asks for.
bool Sessions::release_ended() {
  std::vector<SessionPtr> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  if (ended.empty()) return false;
  const std::lock_guard lock(set_up_mutex_);
  for (const SessionPtr& session : ended) {
    known_.remove(*session);
    if (responder_ != nullptr) responder_->note_end(session);  // it still reads its lines
    const Link& link = session->link();
    transports_.release_region(link.own_slab.id, Release::Withdraw);
    link.transport->close_region(link.peer, link.slab.id);
  }
  return true;
}

}  // namespace rdmacoll
