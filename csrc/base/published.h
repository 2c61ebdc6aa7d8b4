// Published: objects by index, in a table that never moves, so that readers take no lock while
// another thread adds to it. It grows by chunks, each made when something is first put there: a
// table of thousands of places of which few are used costs little.
// Floor: base. Thread: at() any; the rest one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "csrc/base/check.h"

namespace rdmacoll {

template <typename T, size_t kSize>
class Published {
 public:
  Published() = default;
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;
  ~Published() {
    for (std::atomic<Chunk*>& place : chunks_) {
      const std::unique_ptr<Chunk> chunk(place.load(std::memory_order_acquire));
      if (chunk == nullptr) continue;
      for (std::atomic<T*>& object : *chunk) {
        std::unique_ptr<T>(object.load(std::memory_order_acquire)).reset();
      }
    }
  }
  // nullptr where nothing is, or not any more. What it points to must outlive the use: whoever
  // takes an object out sees to it that nobody is still reading.
  T* at(size_t index) const {
    const std::atomic<T*>* place = place_of(index);
    return place != nullptr ? place->load(std::memory_order_acquire) : nullptr;
  }
  void set(size_t index, std::unique_ptr<T> object) {
    RDMACOLL_CHECK(index < kSize && at(index) == nullptr);
    std::atomic<Chunk*>& chunk = chunks_[index / kChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      chunk.store(std::make_unique<Chunk>().release(), std::memory_order_release);
    }
    place_of(index)->store(object.release(), std::memory_order_release);
  }
  std::unique_ptr<T> take(size_t index) {
    std::atomic<T*>* place = place_of(index);
    if (place == nullptr) return nullptr;
    return std::unique_ptr<T>(place->exchange(nullptr, std::memory_order_acq_rel));
  }

 private:
  static constexpr size_t kChunk = std::min<size_t>(kSize, 64);
  static constexpr size_t kChunks = (kSize + kChunk - 1) / kChunk;
  using Chunk = std::array<std::atomic<T*>, kChunk>;

  // nullptr: there is no such place yet.
  std::atomic<T*>* place_of(size_t index) const {
    if (index >= kSize) return nullptr;
    Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk != nullptr ? &(*chunk)[index % kChunk] : nullptr;
  }

  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
};

}  // namespace rdmacoll
