// Published: objects by index, in a table that never moves, so that readers take no lock while
// another thread adds to it.
// Floor: base. Thread: at() any; the rest one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "csrc/base/check.h"

namespace rdmacoll {

template <typename T, size_t kSize>
class Published {
 public:
  ~Published() {
    for (size_t i = 0; i < kSize; ++i) take(i);
  }
  // nullptr where nothing is, or not any more. What it points to must outlive the use: whoever
  // takes an object out sees to it that nobody is still reading.
  T* at(size_t index) const {
    return index < kSize ? table_[index].load(std::memory_order_acquire) : nullptr;
  }
  void set(size_t index, std::unique_ptr<T> object) {
    RDMACOLL_CHECK(index < kSize && at(index) == nullptr);
    table_[index].store(object.release(), std::memory_order_release);
  }
  std::unique_ptr<T> take(size_t index) {
    if (index >= kSize) return nullptr;
    return std::unique_ptr<T>(table_[index].exchange(nullptr, std::memory_order_acq_rel));
  }

 private:
  std::unique_ptr<std::atomic<T*>[]> table_ = std::make_unique<std::atomic<T*>[]>(kSize);
};

}  // namespace rdmacoll
