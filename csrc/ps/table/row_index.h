// RowIndex: ids to numbers that count up from 0, with linear probing: the look for an id touches
// one cache line or two. Ids are never taken out. Floor: ps/table. Thread: one at a time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "csrc/ps/table/table_spec.h"

namespace rdmacoll::ps {

class RowIndex {
 public:
  uint64_t size() const { return size_; }
  uint64_t memory_bytes() const { return places_.capacity() * sizeof(Place); }
  bool has(uint64_t id) const { return size_ > 0 && places_[place_of(id)].number != 0; }
  // Has the processor fetch what a look for the id touches first.
  void prefetch(uint64_t id) const {
    if (!places_.empty()) __builtin_prefetch(&places_[first_of(id)]);
  }
  // The id's number, and whether it is new.
  std::pair<uint64_t, bool> find_or_add(uint64_t id) {
    if (2 * (size_ + 1) > places_.size()) grow();
    Place& place = find(id);
    if (place.number != 0) return {place.number - 1, false};
    place = {id, ++size_};
    return {size_ - 1, true};
  }

 private:
  struct Place {
    uint64_t id = 0;
    uint64_t number = 0;  // plus 1; 0: the place is free
  };
  // That of the id, or the free one where it belongs.
  Place& find(uint64_t id) { return places_[place_of(id)]; }
  uint64_t place_of(uint64_t id) const {
    const uint64_t mask = places_.size() - 1;
    uint64_t at = first_of(id);
    while (places_[at].number != 0 && places_[at].id != id) at = (at + 1) & mask;
    return at;
  }
  // There is a power of two of places. Of the ids that come here, those of one bucket, the lower
  // bits are no longer random.
  uint64_t first_of(uint64_t id) const { return (mixed(id) >> 20) & (places_.size() - 1); }
  void grow() {
    std::vector<Place> before = std::exchange(places_, {});
    places_.resize(before.empty() ? 16 : 2 * before.size());
    for (const Place& place : before) {
      if (place.number != 0) find(place.id) = place;
    }
  }

  std::vector<Place> places_;
  uint64_t size_ = 0;
};

}  // namespace rdmacoll::ps
