// SimTransport: how bytes and signals travel. Floor: transport/sim.
#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/transport/sim/network.h"

namespace rdmacoll {
namespace {

// What a destination holds between put() and delivery: whoever reads too early sees it.
constexpr int kSpoiled = 0xDB;
constexpr uint64_t kMaxPieces = 4;

}  // namespace

SimTransport::Open& SimTransport::opened(PeerId peer, RegionId region) {
  RDMACOLL_CHECK(alive_ && peer < peers_.size());
  const auto open = peers_[peer].regions.find(region);
  RDMACOLL_CHECK(open != peers_[peer].regions.end());
  return open->second;
}

bool SimTransport::mine(const LocalSlice& slice) const {
  const auto found = regions_.find(slice.region);
  if (found == regions_.end()) return false;
  const std::byte* base = found->second->base();
  return slice.data >= base && found->second->holds(slice.data - base, slice.bytes);
}

bool SimTransport::is_cut_off(const Peer& peer) const {
  return network_.transport(peer.rank).cut_off_.count(rank_) > 0;
}

bool SimTransport::refused() {
  if (!network_.timeline_.chance(network_.options_.full_probability)) return false;
  ++network_.counts_.refused;
  return true;
}

Ticket SimTransport::ticket_for(Flight* flight) {
  flight->done = &done_.emplace_back(0);
  return Ticket(*flight->done, 1);
}

Posted SimTransport::put(PeerId peer, uint8_t channel, LocalSlice source, RemoteSlice destination,
                         Ticket* ticket) {
  const Open& open = opened(peer, destination.region);
  RDMACOLL_CHECK(mine(source) && source.bytes == destination.bytes);
  RDMACOLL_CHECK(open.region->holds(destination.offset, destination.bytes));
  RDMACOLL_CHECK(takes_puts(open.region->access));
  if (is_cut_off(peers_[peer])) return Posted::Done;
  if (refused()) return Posted::Full;
  auto flight = std::make_shared<Flight>();
  flight->destination = open.region->base() + destination.offset;
  flight->source = source.data;
  flight->memory = open.region;
  flight->is_put = true;
  flight->local = regions_.at(source.region);
  flight->pieces.push_back({0, source.bytes});
  const bool at_once = network_.timeline_.chance(network_.options_.at_once_probability);
  if (at_once) {
    flight->taken.assign(source.data, source.data + source.bytes);
    flight->source = flight->taken.data();
    flight->local = nullptr;
  } else {
    *ticket = ticket_for(flight.get());
  }
  if (source.bytes > 0 && flight->lands()) {
    std::memset(flight->destination, kSpoiled, source.bytes);
  }
  network_.counts_.to_parts += open.region->access == Access::PutOnly;
  launch(&flow(peers_[peer].rank, channel), std::move(flight));
  return at_once ? Posted::Done : Posted::Pending;
}

Posted SimTransport::get(PeerId peer, uint8_t channel, RemoteSlice source, LocalSlice destination,
                         Ticket* ticket) {
  const Open& open = opened(peer, source.region);
  RDMACOLL_CHECK(mine(destination) && source.bytes == destination.bytes);
  RDMACOLL_CHECK(open.region->holds(source.offset, source.bytes));
  RDMACOLL_CHECK(takes_gets(open.region->access));
  if (is_cut_off(peers_[peer])) return Posted::Done;
  if (refused()) return Posted::Full;
  auto flight = flight_back(open, destination, ticket);
  flight->source = open.region->base() + source.offset;
  flight->keeps_words = source.bytes < kBulkBytes;
  launch(&flow(peers_[peer].rank, channel), std::move(flight));
  return Posted::Pending;
}

std::shared_ptr<SimTransport::Flight> SimTransport::flight_back(const Open& from, LocalSlice to,
                                                                Ticket* ticket) {
  auto flight = std::make_shared<Flight>();
  flight->destination = to.data;
  flight->memory = from.region;
  flight->local = regions_.at(to.region);
  flight->pieces.push_back({0, to.bytes});
  *ticket = ticket_for(flight.get());
  if (to.bytes > 0) std::memset(to.data, kSpoiled, to.bytes);
  return flight;
}

// It is made when it arrives there.
Posted SimTransport::update(PeerId peer, uint8_t channel, RemoteSlice word, const Update& update,
                            LocalSlice before, Ticket* ticket) {
  const Open& open = opened(peer, word.region);
  RDMACOLL_CHECK(word.bytes == kWordBytes && mine(before) && before.bytes == kWordBytes);
  RDMACOLL_CHECK(word.offset % kWordBytes == 0 && open.region->holds(word.offset, kWordBytes));
  RDMACOLL_CHECK(takes_updates(open.region->access));
  if (is_cut_off(peers_[peer])) return Posted::Done;
  if (refused()) return Posted::Full;
  auto flight = flight_back(open, before, ticket);
  flight->word = open.region->base() + word.offset;
  flight->update = update;
  launch(&flow(peers_[peer].rank, channel), std::move(flight));
  return Posted::Pending;
}

// Cuts the flight into pieces, each with its own time.
void SimTransport::launch(Flow* flow, std::shared_ptr<Flight> flight) {
  SimTimeline& timeline = network_.timeline_;
  ++network_.counts_.puts;
  flight->issued = ++issued_;
  const uint64_t most_pieces = flight->word == nullptr ? kMaxPieces : 1;
  for (uint64_t cuts = timeline.below(most_pieces); cuts > 0; --cuts) {
    Piece& piece = flight->pieces[timeline.below(flight->pieces.size())];
    uint64_t first = timeline.below(piece.bytes + 1);
    if (flight->keeps_words) {
      const auto cut = reinterpret_cast<uintptr_t>(flight->source) + piece.offset + first;
      first -= std::min<uint64_t>(first, cut % sizeof(uint64_t));
    }
    const Piece rest{piece.offset + first, piece.bytes - first};
    piece.bytes = first;
    flight->pieces.push_back(rest);
  }
  for (size_t i = 0; i < flight->pieces.size(); ++i) {
    timeline.at(timeline.now_ns() + timeline.delay_ns(network_.options_.max_delay_ns),
                [this, flight] { deliver_piece(flight.get()); });
  }
  std::erase_if(flow->flights, [](const auto& other) { return other->pieces.empty(); });
  flow->flights.push_back(std::move(flight));
}

// Any one of those left; none is left if a signal or the end of a rank came first.
void SimTransport::deliver_piece(Flight* flight) {
  if (flight->pieces.empty()) return;
  std::swap(flight->pieces[network_.timeline_.below(flight->pieces.size())], flight->pieces.back());
  const Piece piece = flight->pieces.back();
  flight->pieces.pop_back();
  ++network_.counts_.pieces;
  if (flight->memory->lease.released) ++network_.counts_.late_pieces;
  if (flight->word != nullptr) {
    const uint64_t before = flight->memory->is_cut_off ? 0 : flight->update.apply_to(flight->word);
    std::memcpy(flight->destination, &before, sizeof(before));
  } else if (piece.bytes > 0 && flight->lands()) {
    std::memcpy(flight->destination + piece.offset, flight->source + piece.offset, piece.bytes);
  }
  if (flight->shadow != nullptr) {
    const auto start = static_cast<uint64_t>(flight->destination - flight->memory->base());
    flight->shadow->landed(start + piece.offset, piece.bytes);
  }
  if (flight->pieces.empty()) finish(flight);
}

// The ticket is done some time after the last piece, as a completion has its own way to go.
void SimTransport::finish(Flight* flight) {
  if (flight->done == nullptr) return;
  SimTimeline& timeline = network_.timeline_;
  timeline.at(timeline.now_ns() + timeline.delay_ns(network_.options_.max_delay_ns),
              [this, done = flight->done] {
                done->store(1, std::memory_order_release);
                awake_ = true;
              });
}

void SimTransport::drop(Flight* flight) {
  if (flight->pieces.empty()) return;
  flight->pieces.clear();
  finish(flight);
}

void SimTransport::send_mapped_stores(Peer* peer) {
  for (auto& [id, open] : peer->regions) {
    if (open.shadow == nullptr) continue;
    for (SimShadow::Store& store : open.shadow->take_stores()) {
      auto flight = std::make_shared<Flight>();
      flight->destination = open.region->base() + store.offset;
      flight->taken = std::move(store.data);
      flight->source = flight->taken.data();
      flight->memory = open.region;
      flight->is_put = true;
      flight->shadow = open.shadow;
      flight->pieces.push_back({0, flight->taken.size()});
      launch(&flow(peer->rank, kMappedStores), std::move(flight));
    }
  }
}

Posted SimTransport::signal(PeerId id, uint8_t channel, RemoteSlice line, uint64_t counter,
                            const Header& header) {
  const Open& open = opened(id, line.region);
  RDMACOLL_CHECK(line.offset % kLineBytes == 0);
  RDMACOLL_CHECK(open.region->holds(line.offset, kLineBytes));
  RDMACOLL_CHECK(takes_signals(open.region->access));
  RDMACOLL_CHECK(header.inline_bytes <= kInlineBytes);
  SimRegion::LineState& state = open.region->signalled[line.offset];
  RDMACOLL_CHECK(counter > state.counter);
  if (is_cut_off(peers_[id])) return Posted::Done;
  if (refused()) return Posted::Full;
  ++network_.counts_.signals;
  state.counter = counter;

  Peer& peer = peers_[id];
  send_mapped_stores(&peer);
  Flow& way = flow(peer.rank, channel);
  auto notice = std::make_shared<Notice>();
  notice->issued = ++issued_;
  notice->memory = open.region;
  notice->offset = line.offset;
  notice->counter = counter;
  notice->header = header;
  notice->before = way.flights;
  const auto& stores = flow(peer.rank, kMappedStores).flights;
  notice->before.insert(notice->before.end(), stores.begin(), stores.end());

  SimTimeline& timeline = network_.timeline_;
  state.delivered_at_ns = std::max(
      state.delivered_at_ns, timeline.now_ns() + timeline.delay_ns(network_.options_.max_delay_ns));
  std::erase_if(way.notices, [](const auto& other) { return other->delivered; });
  schedule(&way, notice, peer.rank, state.delivered_at_ns);
  if (timeline.chance(network_.options_.again_probability)) {
    auto again = std::make_shared<Notice>(*notice);
    again->before.clear();
    again->again = true;
    schedule(&way, std::move(again), peer.rank,
             state.delivered_at_ns + timeline.delay_ns(network_.options_.max_delay_ns));
  }
  return Posted::Done;
}

void SimTransport::schedule(Flow* way, std::shared_ptr<Notice> notice, int rank, int64_t at_ns) {
  network_.timeline_.at(at_ns, [this, notice, rank] { deliver(notice.get(), rank); });
  way->notices.push_back(std::move(notice));
}

void SimTransport::deliver(Notice* notice, int rank) {
  if (notice->dropped || notice->delivered) return;
  std::vector<Notice*> due{notice};
  // Where memory is mapped, its later stores are seen from now on, so all that was signalled before
  // them is.
  if (network_.options_.mapped) due = pending_to(rank);
  std::sort(due.begin(), due.end(),
            [](const Notice* a, const Notice* b) { return a->issued < b->issued; });
  for (Notice* one : due) bring(one);
  SimTransport& receiver = network_.transport(rank);
  for (Peer& sender : receiver.peers_) {
    if (sender.rank != rank_) continue;
    for (auto& [id, open] : sender.regions) {
      if (open.shadow != nullptr) open.shadow->refresh(0, open.region->bytes);
    }
  }
  for (const Notice* one : due) {
    if (one->again && one->memory->signalled[one->offset].counter != one->counter) continue;
    // It is known by its id alone, as in a device's immediate: so that must still be this region's.
    const auto named = receiver.regions_.find(one->memory->id);
    RDMACOLL_CHECK(named != receiver.regions_.end() && named->second == one->memory);
    network_.counts_.signals_again += one->again;
    store(*reinterpret_cast<Line*>(one->memory->base() + one->offset), one->counter, one->header);
  }
  receiver.awake_ = true;
}

std::vector<SimTransport::Notice*> SimTransport::pending_to(int rank) const {
  std::vector<Notice*> pending;
  for (const auto& [to, flow] : flows_) {
    if (to.first != rank) continue;
    for (const auto& notice : flow.notices) {
      if (!notice->dropped && !notice->delivered) pending.push_back(notice.get());
    }
  }
  return pending;
}

// What it follows comes before it.
void SimTransport::bring(Notice* notice) {
  notice->delivered = true;
  for (const auto& flight : notice->before) {
    while (!flight->pieces.empty()) deliver_piece(flight.get());
  }
  notice->before.clear();
}

}  // namespace rdmacoll
