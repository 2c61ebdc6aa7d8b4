// Fifo: a queue in a ring that only grows, so that its steady state allocates nothing, as
// std::deque's does. Few elements: looking for one and taking it out of the middle is linear.
// Floor: base. Thread: one at a time.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "csrc/base/check.h"

namespace rdmacoll {

template <typename T>
class Fifo {
 public:
  // With room for so many from the beginning.
  explicit Fifo(size_t room = 0) : ring_(room) {}
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // By age, the oldest first.
  T& operator[](size_t index) { return ring_[place(index)]; }
  const T& operator[](size_t index) const { return ring_[place(index)]; }
  T& front() { return ring_[first_]; }
  const T& front() const { return ring_[first_]; }
  const T& back() const { return ring_[place(size_ - 1)]; }
  void push(T value) {
    if (size_ == ring_.size()) grow();
    ring_[place(size_++)] = std::move(value);
  }
  T pop() {
    RDMACOLL_CHECK(size_ > 0);
    T value = std::exchange(ring_[first_], T{});
    first_ = place(1);
    --size_;
    return value;
  }
  // The index of the oldest of which it is true; size(): of none.
  template <typename IsIt>
  size_t find(IsIt is_it) const {
    size_t index = 0;
    while (index < size_ && !is_it((*this)[index])) ++index;
    return index;
  }
  // The one of this index; those behind it move up.
  T take_out(size_t index) {
    RDMACOLL_CHECK(index < size_);
    T value = std::move((*this)[index]);
    for (size_t i = index; i + 1 < size_; ++i) (*this)[i] = std::move((*this)[i + 1]);
    (*this)[--size_] = T{};
    return value;
  }

 private:
  static constexpr size_t kLeast = 8;

  // Of the one that came `index` after the oldest.
  size_t place(size_t index) const {
    const size_t at = first_ + index;
    return at < ring_.size() ? at : at - ring_.size();
  }
  void grow() {
    std::vector<T> larger(ring_.empty() ? kLeast : 2 * ring_.size());
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(ring_[place(i)]);
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> ring_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace rdmacoll
