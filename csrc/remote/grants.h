// Grants: memory of this process that one other process may open, and nobody else can: what that
// has allocated here, or what a letter to it brings. Floor: remote. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
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
  // Its number, by which the other process names it.
  uint64_t add(GrantPtr grant) {
    const std::lock_guard lock(mutex_);
    grants_.emplace(++numbers_, std::move(grant));
    return numbers_;
  }
  // Held no more; nothing for a number that the other process was not given.
  void end(const SessionPtr& to, uint64_t number, Grant::State how) {
    GrantPtr ended;  // freed outside the lock: with it may go its memory
    const std::lock_guard lock(mutex_);
    const auto found = grants_.find(number);
    if (found == grants_.end() || found->second->to != to) return;
    found->second->state.store(how, std::memory_order_release);
    ended = std::move(found->second);
    grants_.erase(found);
  }
  // The other process has ended.
  void drop(const SessionPtr& to) {
    std::map<uint64_t, GrantPtr> dropped;
    const std::lock_guard lock(mutex_);
    for (auto it = grants_.begin(); it != grants_.end();) {
      const auto next = std::next(it);
      if (it->second->to == to) dropped.insert(grants_.extract(it));
      it = next;
    }
  }
  uint64_t bytes() const {
    const std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const auto& [number, grant] : grants_) bytes += grant->exposure->info.bytes;
    return bytes;
  }
  uint64_t count() const {
    const std::lock_guard lock(mutex_);
    return grants_.size();
  }

 private:
  mutable std::mutex mutex_;
  uint64_t numbers_ = 0;
  std::map<uint64_t, GrantPtr> grants_;
};

}  // namespace rdmacoll
