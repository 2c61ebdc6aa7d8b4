// UpdateWord: a word of a peer's region, changed in one step (update.h). Floor: engine/session.
// Thread: the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "csrc/engine/session/mover.h"
#include "csrc/engine/session/transfer.h"
#include "csrc/transport/update.h"

namespace rdmacoll {

class UpdateWord final : public Transfer {
 public:
  // The word is of an open region of a transport with updates. before: what was there; is set when
  // it ends well.
  UpdateWord(const RemoteSlice& word, const Update& update, std::shared_ptr<uint64_t> before)
      : word_(word), update_(update), before_(std::move(before)) {}

  State advance(const Way& way) override;
  bool is_under_way() const override { return is_posted_; }
  void let_go(const Way& way) override;
  What what() const override { return {FlightKind::Update, kWordBytes}; }

 private:
  const RemoteSlice word_;
  const Update update_;
  const std::shared_ptr<uint64_t> before_;
  std::optional<LocalSlice> landing_;  // for what was there
  bool is_posted_ = false;
  Ticket ticket_;
};

}  // namespace rdmacoll
