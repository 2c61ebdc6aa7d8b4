// OpenedRegions: the regions of one peer that this process has open, where opening one asks nobody;
// those that the peer has offered with a note, and those that it has taken back before.
// Floor: transport. Thread: at() any; the rest under the transport's mutex.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "csrc/base/limits.h"
#include "csrc/base/published.h"
#include "csrc/memory/region.h"
#include "csrc/transport/lease.h"

namespace rdmacoll {

struct OpenedRegion {
  uint64_t bytes;
  Generation generation;

  bool holds(uint64_t offset, uint64_t count) const {
    return offset <= bytes && count <= bytes - offset;
  }
};

// Opened is an OpenedRegion, with what the transport needs besides.
template <typename Opened>
class OpenedRegions {
 public:
  // nullptr: it is not open.
  const Opened* at(RegionId id) const { return open_.at(id); }

  // It may be open already, by the same key. `owner` is for messages.
  Result<Region> open(RegionId id, const Opened& region, const std::string& owner) {
    const Region opened{id, nullptr, region.bytes};
    if (const Opened* open = at(id)) {
      if (open->generation == region.generation) return opened;
      return Status(StatusCode::InvalidArgument,
                    "the key of a region of " + owner +
                        " belongs to an earlier or later use of its id than the region that is "
                        "open");
    }
    if (withdrawn_.has(id, region.generation)) return withdrawn_by(owner);
    offered_.erase(id);
    open_.set(id, std::make_unique<Opened>(region));
    return opened;
  }
  void note_offer(RegionId id, Generation generation) { offered_[id] = generation; }
  // Which use of the id that was; nullopt: it was not open. With a use: only that, which may be
  // offered alone.
  std::optional<Generation> close(RegionId id, std::optional<Generation> use) {
    if (const Opened* open = at(id)) {
      if (use && *use != open->generation) return std::nullopt;
      return open_.take(id)->generation;
    }
    const auto offered = offered_.find(id);
    if (!use || offered == offered_.end() || offered->second != *use) return std::nullopt;
    offered_.erase(offered);
    return use;
  }
  // The peer takes it back. Whether it is not open here, and never will be; else it stays open
  // until it is closed.
  bool withdraw(RegionId id, Generation generation) {
    if (const Opened* open = at(id); open != nullptr && open->generation == generation)
      return false;
    const auto offered = offered_.find(id);
    if (offered != offered_.end() && offered->second <= generation) offered_.erase(offered);
    withdrawn_.add(id, generation);
    return true;
  }

 private:
  Published<Opened, kMaxRegions> open_;
  std::map<RegionId, Generation> offered_;  // and not opened yet
  Withdrawals withdrawn_;
};

}  // namespace rdmacoll
