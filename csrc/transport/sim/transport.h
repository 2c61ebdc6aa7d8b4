// SimTransport: one rank's end of a SimNetwork. connect() and open_region() do not wait for the
// other side: all ranks are in one thread. The other side hears of a call at once, of an offer with
// a note after a while. Sleep is virtual: arm() gives no descriptor (-1), and
// awake() says whether a real sleeper would have been woken.
// Floor: transport/sim. Thread: one.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "csrc/transport/sim/region.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

class SimNetwork;

class SimTransport final : public Transport {
 public:
  SimTransport(SimNetwork& network, int rank);

  Result<PeerId> connect(const std::string& address, Deadline deadline) override;
  bool called_by(const std::string& address) const override;
  void serve(SetUpReport& report) override;
  Result<std::string> register_region(RegionId region, const RegionMemory& memory) override;
  Status offer_region(PeerId peer, RegionId region, uint64_t note) override;
  Result<Region> open_region(PeerId peer, std::string_view key, Deadline deadline) override;
  void close_region(PeerId peer, RegionId region, std::string_view key = {}) override;
  void cut_off_region(RegionId region) override;
  void release_region(RegionId region, Release how) override;
  bool is_reusable(RegionId region) override;

  Posted put(PeerId peer, uint8_t channel, LocalSlice source, RemoteSlice destination,
             Ticket* ticket) override;
  Posted get(PeerId peer, uint8_t channel, RemoteSlice source, LocalSlice destination,
             Ticket* ticket) override;
  Posted update(PeerId peer, uint8_t channel, RemoteSlice word, const Update& update,
                LocalSlice before, Ticket* ticket) override;
  Posted signal(PeerId peer, uint8_t channel, RemoteSlice line, uint64_t counter,
                const Header& header) override;
  void poll() override {}

  int arm() override;
  void disarm() override { awake_ = true; }
  bool awake() const { return awake_; }

  // Ok, but for a live peer with a mapping (Unsupported, as in shm).
  Status fence(PeerId peer, Deadline deadline) override;
  // As the destructor of other transports: a SimNetwork keeps its own until it ends itself.
  void leave();

 private:
  friend class SimNetwork;

  struct Open {
    std::shared_ptr<SimRegion> region;
    std::shared_ptr<SimShadow> shadow;  // mapped peers
  };
  struct Peer {
    int rank;
    bool is_met = false;  // by connect(); the other side may have called before
    std::map<RegionId, Open> regions{};
    std::map<RegionId, std::shared_ptr<SimRegion>> offered{};  // with a note; not opened yet
    int64_t last_offer_at_ns = 0;                              // to it: its offers come in order
  };
  // What serve() tells.
  struct News {
    std::vector<RegionOffer> offers;
    std::set<int> callers;      // ranks that have called, ever
    std::set<int> new_callers;  // that this rank had not met
  };

  struct Piece {
    uint64_t offset;  // from the start of the flight
    uint64_t bytes;
  };
  // Bytes under way: a put, a get, an update or a mapped store.
  struct Flight {
    uint64_t issued = 0;                    // place in the order of all that this rank issued
    std::atomic<uint64_t>* done = nullptr;  // of its ticket, if it has one
    std::byte* destination = nullptr;
    const std::byte* source = nullptr;  // read when a piece is delivered
    std::vector<std::byte> taken;       // where `source` lies if it was taken at once
    std::shared_ptr<SimRegion> memory;  // of the remote side; keeps it alive
    std::shared_ptr<SimRegion> local;   // of this side; nullptr: it is not needed any more
    std::shared_ptr<SimShadow> shadow;  // of a mapped store
    std::vector<Piece> pieces;          // not delivered
    bool is_put = false;                // or a mapped store
    bool keeps_words = false;           // of its source: aligned ones come whole
    std::byte* word = nullptr;          // of an update
    Update update;

    bool lands() const { return !is_put || !memory->is_cut_off; }
  };
  struct Notice {
    uint64_t issued = 0;
    std::shared_ptr<SimRegion> memory;
    uint64_t offset = 0;
    uint64_t counter = 0;
    Header header;
    std::vector<std::shared_ptr<Flight>> before;  // the promise
    bool dropped = false;
    bool delivered = false;
    bool again = false;  // a second time, unless the line has been signalled anew
  };
  // What is under way to a peer on a channel, in the order of issue.
  struct Flow {
    std::vector<std::shared_ptr<Flight>> flights;
    std::vector<std::shared_ptr<Notice>> notices;
  };
  static constexpr int kMappedStores =
      -1;  // a flow of its own: every signal to the peer follows it

  Open& opened(PeerId peer, RegionId region);
  Region view(const Open& open) const;
  // What comes back of another rank's memory, to a place of this one's.
  std::shared_ptr<Flight> flight_back(const Open& from, LocalSlice to, Ticket* ticket);
  Ticket ticket_for(Flight* flight);
  void withdraw(RegionId region);
  // Whether it lies where the transport's promise lets it: in a region of mine.
  bool mine(const LocalSlice& slice) const;
  bool refused();
  bool is_cut_off(const Peer& peer) const;
  Flow& flow(int rank, int channel) { return flows_[{rank, channel}]; }
  void launch(Flow* flow, std::shared_ptr<Flight> flight);
  void deliver_piece(Flight* flight);
  void schedule(Flow* way, std::shared_ptr<Notice> notice, int rank, int64_t at_ns);
  void deliver(Notice* notice, int rank);
  std::vector<Notice*> pending_to(int rank) const;
  void bring(Notice* notice);
  void finish(Flight* flight);
  void drop(Flight* flight);
  void send_mapped_stores(Peer* peer);

  // Meeting, and offers (set_up.cc).
  static std::string address_of(int rank);
  PeerId peer_of(int rank);
  void hear_call(int rank);
  void send_offer(Peer& peer, RegionOffer offer, std::shared_ptr<SimRegion> region);
  void hear_offer(int rank, RegionOffer offer, const std::shared_ptr<SimRegion>& region);

  // Regions (leases.cc).
  bool under_way(const SimRegion& region) const;
  void tell_closed(int owner, std::shared_ptr<SimRegion> region);
  void hear_withdrawn(int owner, const std::shared_ptr<SimRegion>& region);

  void die();
  void see_end(int rank, Status why);
  void drop_all_to(int rank);

  SimNetwork& network_;
  const int rank_;
  bool alive_ = true;
  bool awake_ = true;
  std::map<RegionId, std::shared_ptr<SimRegion>> regions_;  // mine, until their ids are reusable
  Generation generations_ = 0;
  std::vector<Peer> peers_;  // by PeerId, in the order in which they were met
  News news_;
  std::vector<Status> ended_;  // by rank: Ok, or how it ended
  std::set<int> cut_off_;      // ranks of which nothing lands here any more
  std::map<std::pair<int, int>, Flow> flows_;
  std::deque<std::atomic<uint64_t>> done_;  // of each ticket, as they end in any order
  uint64_t issued_ = 0;
};

}  // namespace rdmacoll
