// Spare: keeps one thing that nobody uses for who needs the next, without a lock. With one in use
// at a time, as in a loop of blocking calls, that is all a pool takes. Floor: base. Thread: any.
#pragma once

#include <atomic>

namespace rdmacoll {

template <typename T>
class Spare {
 public:
  // nullptr: there is none.
  T* take() {
    if (kept_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    return kept_.exchange(nullptr, std::memory_order_acquire);
  }
  // False: there is one already, and this is the caller's still.
  bool keep(T* thing) {
    T* none = nullptr;
    return kept_.compare_exchange_strong(none, thing, std::memory_order_release,
                                         std::memory_order_relaxed);
  }

 private:
  std::atomic<T*> kept_{nullptr};
};

}  // namespace rdmacoll
