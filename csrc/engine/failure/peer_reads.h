// PeerReads: reads the same area out of the blocks of many peers, one-sidedly, each into a place of
// this rank's own block. Nobody has to answer; where a network lies between, it takes a moment.
// Floor: engine/failure. Thread: the driver.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/engine/channel/layout.h"
#include "csrc/engine/channel/peer_links.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

class PeerReads {
 public:
  PeerReads(const ReadArea& area, const PeerLinks& links);

  uint32_t places() const { return static_cast<uint32_t>(places_.size()); }
  // Begins to read the peer's area into the place. False: the peer is not met, an older read is not
  // taken or may still arrive there, or the transport is full; come again.
  bool post(uint32_t place, uint32_t peer);
  // What was read, once; it stays until the next post(). Zeros: the peer is gone, nothing was read.
  // nullptr: there is nothing new.
  const std::byte* take(uint32_t place);
  // Of whom the place's last read is.
  uint32_t peer(uint32_t place) const { return places_[place].peer; }
  // What is under way is not taken any more.
  void forget();

 private:
  struct Place {
    bool awaited = false;  // else what still arrives there is forgotten
    uint32_t peer = 0;
    Ticket ticket{};
  };

  const ReadArea area_;
  const PeerLinks& links_;
  std::vector<Place> places_;
};

}  // namespace rdmacoll
