// Snapshot: a read of the newest version of an exposure that has versions, or of some of its bytes:
// never of parts of two.
// Floor: remote. Thread: the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/engine/session/mover.h"
#include "csrc/engine/session/transfer.h"
#include "csrc/remote/statement.h"

namespace rdmacoll {

class Snapshot final : public Transfer {
 public:
  // parts: one or more, of versions of version_bytes, into `mine`. newer_than: a version that the
  // caller has; nothing is read if there is no newer one. version: is set when it ends well; 0:
  // there is none.
  Snapshot(LocalSlice mine, std::vector<MovedRange> parts, uint64_t version_bytes,
           const Region& theirs, uint64_t offset, uint64_t newer_than,
           std::shared_ptr<uint64_t> version);

  State advance(const Way& way) override;
  bool is_under_way() const override { return mover_.is_under_way(); }
  void let_go(const Way& way) override;
  What what() const override { return {FlightKind::Snapshot, mine_.bytes}; }

 private:
  enum class Step : uint8_t { Version, Data, Check };
  void begin(Step step);
  // Whether the step after this one has begun; false: it has ended.
  bool go_on();
  const Statement& landed() const { return *reinterpret_cast<const Statement*>(landing_->data); }

  const LocalSlice mine_;
  const std::vector<MovedRange> parts_;
  const uint64_t version_bytes_;
  const Region theirs_;
  const uint64_t offset_;
  const uint64_t newer_than_;
  const std::shared_ptr<uint64_t> version_;
  std::optional<LocalSlice> landing_;  // for the statement
  Step step_ = Step::Version;
  uint64_t reading_ = 0;  // the version
  Mover mover_;
};

}  // namespace rdmacoll
