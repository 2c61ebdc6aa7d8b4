// KnownSessions: the sessions of a process by the processes they are with, and who uses each: one
// that nobody uses is closed after a while (sessions_closing.cc).
// Floor: engine/session. Thread: under the mutex of Sessions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "csrc/engine/session/session.h"

namespace rdmacoll {

class KnownSession {
 public:
  KnownSession(SessionPtr session, int64_t now_ns)
      : session_(std::move(session)), idle_since_ns_(now_ns) {}

  enum class State : uint8_t {
    Open,
    Asks,    // this process has said that it does not use it, and waits for the other's word
    Closed,  // both have; its memory is about to be given back
  };
  State state = State::Open;

  // Without using it.
  const SessionPtr& session() const { return session_; }
  // Whoever holds this uses the session.
  SessionPtr use() {
    if (SessionPtr in_use = users_.lock()) return in_use;
    // A count of its own, beside that of those who only know it.
    SessionPtr in_use(session_.get(), [known = session_](Session*) {});
    users_ = in_use;
    return in_use;
  }
  bool is_used() const { return !users_.expired(); }
  // How long nobody has used it and nothing was under way, as far as was looked.
  int64_t idle_ns(int64_t now_ns) {
    if (is_used() || session_->is_busy()) idle_since_ns_ = now_ns;
    return now_ns - idle_since_ns_;
  }
  void note_use(int64_t now_ns) { idle_since_ns_ = now_ns; }

 private:
  SessionPtr session_;
  std::weak_ptr<Session> users_;
  int64_t idle_since_ns_;
};

class KnownSessions {
 public:
  using Peer = std::pair<Transport*, PeerId>;
  static Peer peer_of(const Session& session) {
    return {session.link().transport, session.link().peer};
  }

  // nullptr: there is none. What it points to stays until the session is removed.
  KnownSession* find(const Peer& peer) {
    const auto found = by_peer_.find(peer);
    return found == by_peer_.end() ? nullptr : &found->second;
  }
  KnownSession* find(const std::string& address) {
    const auto found = peers_.find(address);
    return found == peers_.end() ? nullptr : find(found->second);
  }
  // nullptr: it was removed.
  KnownSession* find(const Session& session) {
    KnownSession* const known = find(peer_of(session));
    return known != nullptr && known->session().get() == &session ? known : nullptr;
  }
  void add(const SessionPtr& session, int64_t now_ns) {
    by_peer_.try_emplace(peer_of(*session), session, now_ns);
  }
  // Its process is known by that address, too.
  void name(const Peer& peer, const std::string& address) {
    if (!address.empty()) peers_[address] = peer;
  }
  void remove(const Session& session) {
    if (find(session) == nullptr) return;
    const Peer peer = peer_of(session);
    by_peer_.erase(peer);
    std::erase_if(peers_, [&](const auto& named) { return named.second == peer; });
  }
  template <typename Do>
  void each(Do what) {
    for (auto& [peer, known] : by_peer_) what(known);
  }

 private:
  std::map<Peer, KnownSession> by_peer_;
  std::map<std::string, Peer> peers_;  // by address
};

}  // namespace rdmacoll
