// VerbsTransport: processes that an RDMA network joins, by one-sided writes over reliable
// connections (RC) of libibverbs: InfiniBand, RoCE, and Soft-RoCE.
// Floor: transport/verbs. Thread: transport.h.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/job_key.h"
#include "csrc/base/log.h"
#include "csrc/base/published.h"
#include "csrc/memory/unique_fd.h"
#include "csrc/memory/wake_fd.h"
#include "csrc/transport/errands.h"
#include "csrc/transport/set_up_news.h"
#include "csrc/transport/this_process.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/connection/completion_queue.h"
#include "csrc/transport/verbs/connection/listener.h"
#include "csrc/transport/verbs/connection/met_processes.h"
#include "csrc/transport/verbs/connection/peer.h"
#include "csrc/transport/verbs/settings/settings.h"

namespace rdmacoll {

// How THE PROMISE is kept: a put is an RDMA WRITE, a signal a WRITE_WITH_IMM of a record, behind
// the puts on the same queue pair. RC delivers in order, and a completion at the receiver says that
// all before it is in memory, even where the device orders writes relaxedly. Only then poll()
// copies the record into its line and stores the counter, with release. Puts that went over other
// queue pairs (stripes) are followed by a mark on each of them, an empty WRITE_WITH_IMM, and the
// signal says on which: poll() keeps it, and all behind it, until they have come. It orders all
// channels of a pair together, which is more than promised.
//
// Back-pressure: work requests that the device has not reported done are counted against the send
// queue, signals against the receives that the peer has posted (the window, told with every signal,
// or by a write of its own when there is none); beyond either, Full. So a message never finds the
// receiver not ready, however long it sleeps.
//
// How processes meet: the address of a process names a datagram queue pair, its listener. Of two
// that connect(), each sends the other the numbers of its own RC queue pairs, signed with the job's
// secret, until both know that both are joined. The listener thread answers, also when nobody
// drives; of who has not been called here it keeps what was said, and tells serve().
//
// A peer's end: its goodbye, or that it answers nothing: what is sent to it fails after the retries
// of VerbsConfig. To a peer that nothing is sent to and nothing comes from, poll() sends an empty
// write each second.
//
// fork(): a child must not use the transport of its parent; in it the destructor leaves everything
// as it is, the device belongs to the parent.
class VerbsTransport final : public Transport {
 public:
  // Copies the table. The clock must outlive the transport and run in real time.
  static Result<std::unique_ptr<VerbsTransport>> open(const VerbsTable& table, const Config& config,
                                                      const Clock& clock,
                                                      const ThisProcess& process);
  // Sends what is still queued, says goodbye, and waits a bounded time for both to be taken.
  ~VerbsTransport() override;

  Result<PeerId> connect(const std::string& address, Deadline deadline) override;
  bool called_by(const std::string& address) const override;
  Result<std::string> register_region(RegionId region, const RegionMemory& memory) override;
  void serve(SetUpReport& report) override;
  // Without a note nothing is sent: the key is enough. With one, poll() sends it.
  Status offer_region(PeerId peer, RegionId region, uint64_t note) override;
  Result<Region> open_region(PeerId peer, std::string_view key, Deadline deadline) override;
  void close_region(PeerId peer, RegionId region, std::string_view key = {}) override;
  void cut_off_region(RegionId region) override;
  // Deregistered by poll(), once every living peer that it was offered to has closed it.
  void release_region(RegionId region, Release how) override;
  bool is_reusable(RegionId region) override { return regions_.at(region) == nullptr; }

  Posted put(PeerId peer, uint8_t channel, LocalSlice source, RemoteSlice destination,
             Ticket* ticket) override;
  Posted get(PeerId peer, uint8_t channel, RemoteSlice source, LocalSlice destination,
             Ticket* ticket) override;
  Posted signal(PeerId peer, uint8_t channel, RemoteSlice line, uint64_t counter,
                const Header& header) override;
  void poll() override;

  int arm() override { return completions_.arm(); }
  void disarm() override { completions_.disarm(); }

  // Puts the connection into its error state: nothing lands any more.
  Status fence(PeerId peer, Deadline deadline) override;

 private:
  using Peer = verbs::Peer;
  using PeerState = verbs::PeerState;

  VerbsTransport(std::unique_ptr<const VerbsTable> table, VerbsConfig config, Log log, JobKey key,
                 const Clock& clock, std::unique_ptr<Device> device);
  Status start_queue_pair(const ThisProcess& process);

  // Connecting (connect.cc), under the mutex.
  Result<Peer*> admit(const verbs::Address& theirs);
  Status equip(Peer* peer);
  void discard(Peer& peer);
  void hear_datagram(const std::byte* data, size_t bytes);
  void hear(Peer* peer, const verbs::Hello& hello);
  Status join(Peer* peer, const verbs::Hello& hello);
  void say_hello_again(Peer* peer);
  void say_hello(const Peer& peer);
  void hear_event(const ibv_async_event& event);
  void hear_closed(const Status& why);
  Status timed_out(const Peer& peer) const;

  // Regions (regions.cc).
  Result<Region> open_part(Peer& peer, const verbs::PartKey& key);

  // The data path (datapath.cc).
  Peer& peer_at(PeerId id) const;
  const verbs::RemoteRegion& opened(const Peer& peer, RegionId region) const;
  uint32_t local_key(const LocalSlice& slice) const;
  struct Transfer;
  Posted transfer(Peer& peer, const Transfer& what, Ticket* ticket);
  bool may_signal(Peer& peer);
  void to_ring(Peer& peer);
  bool ring(Peer& peer, verbs::QueuePair& queue_pair);
  bool send_notice(Peer& peer, uint32_t notice, const verbs::SignalRecord* record = nullptr);

  // Completions (completions.cc): the driver's.
  void take(const ibv_wc& completion);
  void take_receive(Peer& peer, uint8_t stripe, uint32_t immediate);
  void take_deferred(Peer& peer);
  bool take_signal(Peer& peer, verbs::Immediate immediate);
  void take_notice(Peer& peer, uint32_t notice);
  void hear_of_region(Peer& peer, uint32_t notice, const verbs::RegionNotice& about);
  void hear_offer(Peer& peer, const verbs::OfferNotice& offer);
  void make_room(Peer& peer, uint8_t stripe);
  void tell_window(Peer& peer);
  void lose(Peer& peer, PeerState state, Status why);

  // Now and then (housekeeping.cc): the driver's.
  void run_errands();
  void send_notices();
  bool send_notice(Peer& peer, Notice& notice);
  bool send_offer(Peer& peer, const Notice& notice);
  void probe_silent_peers();
  void deregister(verbs::OwnRegion& region);
  void deregister_released();
  bool is_in_use(verbs::OwnRegion& region);
  void leave();
  bool say_goodbye();
  void close_device();

  const VerbsTable& table() const { return *table_; }

  const std::unique_ptr<const VerbsTable> table_;  // what others refer to
  const VerbsConfig config_;
  const JobKey key_;
  const Clock& clock_;
  const Log log_;
  const pid_t pid_;
  std::unique_ptr<Device> device_;
  verbs::Address own_address_;

  verbs::CompletionQueue completions_;
  Published<Peer, kMaxPeers> peers_;
  Published<verbs::OwnRegion, kMaxRegions> regions_;  // mine

  mutable std::mutex mutex_;  // what follows, and what of the errands says so
  std::condition_variable changed_;
  verbs::MetProcesses met_;
  SetUpNews news_;
  Generation generations_ = 0;
  struct Failures {
    Status device;
    Status listener;       // it hears nothing any more
    std::string reported;  // trouble of the device that is not known to be over
  };
  Failures failures_;

  Errands errands_;
  std::vector<Peer*> chained_;  // the driver's

  std::unique_ptr<verbs::ConnectionListener> listener_;  // last: it ends before what it uses
};

}  // namespace rdmacoll
