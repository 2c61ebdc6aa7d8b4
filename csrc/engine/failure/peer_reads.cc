// PeerReads. Floor: engine/failure. Thread: the driver.
#include "csrc/engine/failure/peer_reads.h"

#include <cstring>

namespace rdmacoll {

PeerReads::PeerReads(const ReadArea& area, const PeerLinks& links)
    : area_(area), links_(links), places_(area.places) {}

bool PeerReads::post(uint32_t index, uint32_t peer) {
  Place& place = places_[index];
  const MetPeer* met = links_.at(peer);
  if (met == nullptr || place.awaited || !place.ticket.done()) return false;
  const Link& link = met->link;
  const Region& block = links_.block();
  const LocalSlice destination{block.base + area_.place(index), area_.bytes, block.id};
  // Nothing is read from a peer that is gone. What another one said must not pass for its words.
  std::memset(destination.data, 0, destination.bytes);
  Ticket ticket;
  const Posted posted = link.transport->get(
      link.peer, kOrderedChannel, {link.block.id, area_.own, area_.bytes}, destination, &ticket);
  if (posted == Posted::Full) return false;
  place = {true, peer, posted == Posted::Pending ? ticket : Ticket{}};
  return true;
}

const std::byte* PeerReads::take(uint32_t index) {
  Place& place = places_[index];
  if (!place.awaited || !place.ticket.done()) return nullptr;
  place.awaited = false;
  return links_.block().base + area_.place(index);
}

void PeerReads::forget() {
  for (Place& place : places_) place.awaited = false;
}

}  // namespace rdmacoll
