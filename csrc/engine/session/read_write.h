// Read and Write: ranges of a peer's region, into memory of this process, or from it; a write may
// notify the peer, which then sees the data, too. Floor: engine/session. Thread: the driver.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "csrc/engine/session/mover.h"
#include "csrc/engine/session/transfer.h"

namespace rdmacoll {

class Read final : public Transfer {
 public:
  Read(LocalSlice mine, const Region& theirs, uint64_t offset)
      : mover_(Direction::FromPeer, mine, theirs, offset), bytes_(mine.bytes) {}
  // Only these (mover.h).
  Read(LocalSlice mine, const Region& theirs, uint64_t offset, std::vector<MovedRange> ranges)
      : mover_(Direction::FromPeer, mine, theirs, offset, std::move(ranges)), bytes_(mine.bytes) {}

  State advance(const Way& way) override;
  bool is_under_way() const override { return mover_.is_under_way(); }
  What what() const override { return {FlightKind::Read, bytes_}; }

 private:
  Mover mover_;
  const uint64_t bytes_;
};

class Write final : public Transfer {
 public:
  // What the peer is told once it can see the data: a line of its session memory, and a counter
  // that is larger than all before it there; 0: it is not told.
  struct Notification {
    uint32_t line = 0;
    uint64_t counter = 0;
  };

  Write(LocalSlice mine, const Region& theirs, uint64_t offset, Notification notification)
      : mover_(Direction::ToPeer, mine, theirs, offset),
        bytes_(mine.bytes),
        notification_(notification) {}
  // Only these (mover.h). No two have a byte of the peer in common: nothing orders them.
  Write(LocalSlice mine, const Region& theirs, uint64_t offset, std::vector<MovedRange> ranges,
        Notification notification)
      : mover_(Direction::ToPeer, mine, theirs, offset, std::move(ranges)),
        bytes_(mine.bytes),
        notification_(notification) {}

  State advance(const Way& way) override;
  bool is_under_way() const override { return mover_.is_under_way(); }
  std::optional<uint32_t> notifies() const override {
    return notification_.counter > 0 ? std::optional(notification_.line) : std::nullopt;
  }
  What what() const override { return {FlightKind::Write, bytes_}; }

 private:
  Mover mover_;
  const uint64_t bytes_;
  Notification notification_;
};

}  // namespace rdmacoll
