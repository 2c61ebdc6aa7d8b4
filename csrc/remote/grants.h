// Grants: memory of this process that one other process may open, and nobody else can: what that
// has allocated here, or what a letter to it brings. Floor: remote. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "csrc/engine/session/session.h"
#include "csrc/remote/exposure.h"

namespace rdmacoll {

struct Grant {
  Grant(SessionPtr to, std::shared_ptr<Exposure> exposure)
      : to(std::move(to)), exposure(std::move(exposure)) {}

  enum class State : uint8_t {
    Held,
    Done,     // the other process needs it no more
    Refused,  // it will not take it
  };
  const SessionPtr to;
  const std::shared_ptr<Exposure> exposure;
  std::atomic<State> state{State::Held};
};
using GrantPtr = std::shared_ptr<Grant>;

class Grants {
 public:
  // False: there is one of this number for that process.
  bool add(uint64_t number, GrantPtr grant) {
    const std::lock_guard lock(mutex_);
    return grants_.emplace(Key{grant->to, number}, grant).second;
  }
  // nullptr: there is none of this number for that process.
  GrantPtr find(const SessionPtr& to, uint64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = grants_.find({to, number});
    return found == grants_.end() ? nullptr : found->second;
  }
  // Held no more.
  void end(const SessionPtr& to, uint64_t number, Grant::State how) {
    GrantPtr ended;  // freed outside the lock: with it may go its memory
    const std::lock_guard lock(mutex_);
    const auto found = grants_.find({to, number});
    if (found == grants_.end()) return;
    found->second->state.store(how, std::memory_order_release);
    ended = std::move(found->second);
    grants_.erase(found);
  }
  // The other process has ended.
  void drop(const SessionPtr& to) {
    std::map<Key, GrantPtr> dropped;
    const std::lock_guard lock(mutex_);
    for (auto it = grants_.begin(); it != grants_.end();) {
      const auto next = std::next(it);
      if (it->first.first == to) dropped.insert(grants_.extract(it));
      it = next;
    }
  }
  uint64_t bytes() const {
    const std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const auto& [key, grant] : grants_) bytes += grant->exposure->info.bytes;
    return bytes;
  }
  uint64_t count() const {
    const std::lock_guard lock(mutex_);
    return grants_.size();
  }

 private:
  using Key = std::pair<SessionPtr, uint64_t>;
  mutable std::mutex mutex_;
  std::map<Key, GrantPtr> grants_;
};

}  // namespace rdmacoll
