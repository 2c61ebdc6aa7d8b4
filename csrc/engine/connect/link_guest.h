// LinkGuest: who meets other processes beside the groups, as the linker sees it: the sessions.
// Floor: engine/connect. Thread: under the linker's mutex.
#pragma once

#include "csrc/engine/connect/transports.h"

namespace rdmacoll {

class LinkGuest {
 public:
  virtual ~LinkGuest() = default;
  // An offer, or a note alone, with kSessionToken.
  virtual void hear(const Transports::Offer& offer) = 0;
  // A look at all that is under way; whether any was.
  virtual bool turn() = 0;
};

}  // namespace rdmacoll
