// TcpTransport: processes that any network joins, by one-sided writes in frames over TCP
// connections.
// Floor: transport/tcp. Thread: transport.h.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/job_key.h"
#include "csrc/base/published.h"
#include "csrc/memory/unique_fd.h"
#include "csrc/transport/errands.h"
#include "csrc/transport/set_up_news.h"
#include "csrc/transport/tcp/connection/connector.h"
#include "csrc/transport/tcp/connection/peer.h"
#include "csrc/transport/tcp/settings/settings.h"
#include "csrc/transport/this_process.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// How THE PROMISE is kept: a connection is a stream of bytes. The receiver's poll() reads the
// payload of a put straight to its place, and comes to the signal behind it afterwards; only then
// it writes the line, its counter last. Large puts are cut over several connections, if there are
// any; then a mark goes before the signal, and the receiver does not go on behind it until all of
// them have come. All channels of a pair are ordered together, which is more than promised.
//
// Both sides must be driven: the receiver's poll() takes puts, and answers gets. What has come
// makes `attention_fd` readable.
//
// Source memory: frames name where their payload lies, and poll() gives the socket what it takes.
// A put is done when the socket has all of it.
//
// How processes meet: connection/connector.h. Every process that connects has to prove that it
// knows the job's secret (connection/handshake.h), and every frame is signed (connection/frame.h).
//
// A peer's end: the connection's end, which its kernel tells at once when the process is killed; or
// that its host acknowledges nothing for RDMACOLL_TCP_TIMEOUT_MS. A process that is stopped still
// has a host that acknowledges: it counts as alive here.
//
// fork(): a child must not use the transport of its parent; in it the destructor closes
// descriptors, and nothing else. The sockets are none of a child's, so that it hides no end of its
// parent.
class TcpTransport final : public Transport {
 public:
  // The clock must outlive the transport and run in real time.
  static Result<std::unique_ptr<TcpTransport>> open(const Config& config, const Clock& clock,
                                                    const ThisProcess& process);
  // Sends what is still queued, says goodbye, and waits a bounded time for both to be taken.
  ~TcpTransport() override;

  static constexpr const char* kName = "tcp";

  Result<PeerId> connect(const std::string& address, Deadline deadline) override;
  bool called_by(const std::string& address) const override;
  Result<std::string> register_region(RegionId region, const RegionMemory& memory) override;
  void serve(SetUpReport& report) override;
  // Without a note nothing is sent: the key is enough. With one, poll() sends it.
  Status offer_region(PeerId peer, RegionId region, uint64_t note) override;
  Result<Region> open_region(PeerId peer, std::string_view key, Deadline deadline) override;
  void close_region(PeerId peer, RegionId region, std::string_view key = {}) override;
  // Forgotten by poll(), once every living peer that it was offered to has closed it.
  void cut_off_region(RegionId region) override;
  void release_region(RegionId region, Release how) override;
  bool is_reusable(RegionId region) override { return regions_.at(region) == nullptr; }

  Posted put(PeerId peer, uint8_t channel, LocalSlice source, RemoteSlice destination,
             Ticket* ticket) override;
  Posted get(PeerId peer, uint8_t channel, RemoteSlice source, LocalSlice destination,
             Ticket* ticket) override;
  Posted update(PeerId peer, uint8_t channel, RemoteSlice word, const Update& update,
                LocalSlice before, Ticket* ticket) override;
  Posted signal(PeerId peer, uint8_t channel, RemoteSlice line, uint64_t counter,
                const Header& header) override;
  void poll() override;
  Placement begin_placement(PeerId peer, std::byte* data, uint64_t bytes) override;
  // Frames that come for it later are read and dropped.
  void end_placement(const Placement& placement) override;

  // What sleeps is woken by what poll() would find.
  int arm() override { return data_set_.get(); }
  void disarm() override {}

  // Closes the connections: nothing lands any more.
  Status fence(PeerId peer, Deadline deadline) override;

 private:
  using Peer = tcp::Peer;
  using PeerState = tcp::PeerState;
  class Taker;

  TcpTransport(const tcp::TcpConfig& config, JobKey key, const Clock& clock);
  Status start(const ThisProcess& process);
  void add_loopback();
  void leave();
  bool has_left(Peer& peer);

  // Connecting (connect.cc), under the mutex.
  Status admit(PeerId id, const tcp::Address& theirs, tcp::Connections connections);
  Status timed_out(const tcp::Address& theirs) const;
  template <typename Ready>
  bool serve_until(Deadline deadline, Ready ready);

  // Regions (regions.cc).
  Result<Region> open_part(Peer& peer, const tcp::PartKey& key);
  void hear_of_region(Peer& peer, const tcp::FrameHead& notice, Generation generation);
  bool hear_offer(Peer& peer, RegionId region, const tcp::OfferBody& offer);

  // The data path (datapath.cc): the driver's.
  Peer& peer_at(PeerId id) const;
  const OpenedRegion& opened(const Peer& peer, RegionId region) const;
  bool has_room(const Peer& peer, uint64_t bytes) const;
  tcp::FrameHead head_of_put(const Peer& peer, const RemoteSlice& destination) const;
  void push_put(Peer& peer, const LocalSlice& source, tcp::FrameHead head);
  bool ask(Peer& peer, tcp::FrameHead head, const void* body, size_t bytes, const LocalSlice& place,
           Ticket* ticket);
  void push_control(Peer& peer, const tcp::FrameHead& head, const void* body, size_t bytes);
  void write(Peer& peer);
  void write_stream(Peer& peer, size_t stream);
  void watch(Peer& peer, size_t stream);
  void to_write(Peer& peer);
  void store_line(const RemoteSlice& line, uint64_t counter, const Header& header);

  // What comes (receive.cc): the driver's.
  void take_events();
  void read(Peer& peer, size_t stream);
  void end_stream(Peer& peer, size_t stream, int error);
  void lose(Peer& peer, PeerState state, Status why);
  void lose_at_end(Peer& peer, int error);

  // Now and then (housekeeping.cc): the driver's.
  void run_errands();
  void send_notices();
  bool send_notice(const Notice& notice);
  void send_offer(Peer& peer, const Notice& notice);
  void send(Peer& peer, const tcp::FrameHead& head, const void* body, size_t bytes);
  void forget_released();
  bool is_in_use(tcp::OwnRegion& region);
  void drop_payload_into(RegionId region);
  void look_for_silence();

  const tcp::TcpConfig config_;
  const JobKey key_;
  const Clock& clock_;
  const pid_t pid_;
  tcp::Address own_address_;
  UniqueFd data_set_;  // epoll: the connections of peers

  Published<Peer, kMaxPeers> peers_;
  Published<tcp::OwnRegion, kMaxRegions> regions_;  // mine

  mutable std::mutex mutex_;  // what follows, and what of the errands says so
  SetUpNews news_;
  std::unique_ptr<tcp::Connector> connector_;
  std::map<ProcessId, PeerId> ids_;
  Generation generations_ = 0;

  Errands errands_;
  std::vector<Peer*> unsent_;   // the driver's
  tcp::Placements placements_;  // the same
};

}  // namespace rdmacoll
