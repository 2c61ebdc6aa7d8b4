// Spares: things that nobody uses, kept for who needs the next. The newest goes from hand to hand
// without a lock: with one in use at a time, as in a loop of blocking calls, that is all it takes.
// Floor: engine/work. Thread: any.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

namespace rdmacoll {

// Owns nothing: whoever has one empties it with take() before it goes.
template <typename T>
class Spares {
 public:
  // nullptr: there is none.
  T* take() {
    if (newest_.load(std::memory_order_relaxed) != nullptr) {
      if (T* thing = newest_.exchange(nullptr, std::memory_order_acquire)) return thing;
    }
    const std::lock_guard lock(mutex_);
    if (others_.empty()) return nullptr;
    T* thing = others_.back();
    others_.pop_back();
    return thing;
  }
  void keep(T* thing) {
    T* none = nullptr;
    if (newest_.compare_exchange_strong(none, thing, std::memory_order_release,
                                        std::memory_order_relaxed)) {
      return;
    }
    const std::lock_guard lock(mutex_);
    others_.push_back(thing);
  }

 private:
  std::atomic<T*> newest_{nullptr};
  std::mutex mutex_;
  std::vector<T*> others_;
};

}  // namespace rdmacoll
