// ShmTransport: processes of one host through shared memory. A put is a memcpy into memory that the
// peer also maps; a signal is a store. The kernel is asked only at set-up, to sleep, and to notice
// a peer's end.
// Floor: transport/shm. Thread: transport.h.
#pragma once

#include <sys/types.h>

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/job_key.h"
#include "csrc/transport/set_up_news.h"
#include "csrc/transport/shm/handshake.h"
#include "csrc/transport/shm/peer.h"
#include "csrc/transport/shm/unmet.h"
#include "csrc/transport/this_process.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// How THE PROMISE is kept: a put is complete, as stores of this CPU, when it returns. A signal
// writes the line's header, then the counter with release; whoever loads the counter with acquire
// and sees the value sees all that this thread stored before. That is stronger than promised (it
// orders channels too); nothing may rely on more than the promise.
//
// How processes meet: each listens on an abstract unix socket whose random name is in its address.
// Of two, the one with the smaller process id dials; the other knocks, so that it does. Each has
// the other prove that it knows the job's secret (handshake.h); then both say Hello and pass their
// control segment and an eventfd; later each region passes as a descriptor too. So shm is used only
// where memory really can be shared, and nothing has a name that would outlive a kill -9.
//
// Sleep: arm() raises a flag in the control segment; a signaller looks at it after its store and
// rings the eventfd. A peer's end shows on its socket and, should something else hold that
// open, on its pidfd.
//
// Ranks may be threads of one process: regions between them are handed over by reference, not
// mapped twice, so that ThreadSanitizer sees both sides of a race.
//
// fork(): a child must not use the transport of its parent, and its exit does not disturb it: the
// destructor in another process only closes descriptors. The sockets are none of a child's, so that
// it hides no end of its parent.
class ShmTransport final : public Transport {
 public:
  // `clock` must outlive the transport and run in real time.
  static Result<std::unique_ptr<ShmTransport>> open(const Config& config, const Clock& clock,
                                                    const ThisProcess& process);
  ~ShmTransport() override;

  static constexpr const char* kName = "shm";

  Result<PeerId> connect(const std::string& address, Deadline deadline) override;
  bool called_by(const std::string& address) const override;
  // Of a whole segment: peers map it, all alike.
  Result<std::string> register_region(RegionId region, const RegionMemory& memory) override;
  void serve(SetUpReport& report) override;
  Status offer_region(PeerId peer, RegionId region, uint64_t note) override;
  Result<Region> open_region(PeerId peer, std::string_view key, Deadline deadline) override;
  void close_region(PeerId peer, RegionId region, std::string_view key = {}) override;
  // The memory itself stays until the last peer closed it: a late write of a live peer lands in
  // pages that nobody reads, and never in those of another region of the same id.
  void cut_off_region(RegionId) override {}
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
  void poll() override;

  int arm() override;
  void disarm() override;

  // Ok for a peer that is gone. Unsupported for one that lives: it has my pages mapped and nobody
  // can take them away. Memory that such a peer may still write is not reused but released.
  Status fence(PeerId peer, Deadline deadline) override;

 private:
  ShmTransport(const Clock& clock, JobKey key, ShmAddress own_address, SharedSegment control,
               WakeFd wake_fd, SoleFd listener);
  void leave();
  void add_self(SharedSegment control, WakeFd wake_fd);
  Status watch_own_descriptors();

  // Connecting (connect.cc, serve.cc). All of it under the mutex but for serve_until.
  Status reachable(const ShmAddress& theirs) const;
  void note_caller(const ProcessId& process, pid_t pid);
  Result<PeerSocket> listener_of(const ShmAddress& theirs) const;  // not valid(): busy
  Status dial(const ShmAddress& theirs);
  bool dialling(const ProcessId& process) const;
  void look();
  void accept_callers();
  Status say_hello(PeerSocket socket, const ShmAddress* dialled);
  void hear_handshake(int fd);
  bool reply(const Handshake& handshake, Handshake::Next next);
  void drop_the_oldest();
  void refuse(const Handshake& handshake, const std::string& why);
  Status admit(Incoming hello, PeerSocket socket);
  Status watch_peer(PeerId id, Peer* peer, pid_t pid);
  // Looks at sockets until ready() is true (called under the mutex); false: the deadline passed.
  template <typename Ready>
  bool serve_until(Deadline deadline, Ready ready);

  // Peers' messages and ends (peers.cc), under the mutex.
  void hear_peer(Peer* peer);
  void lose(Peer* peer, PeerState state, Status why);
  void check_failures();

  // Regions (regions.cc), under the mutex.
  struct MyRegion {
    Lease lease;
    std::shared_ptr<SharedSegment> memory;  // nullptr once it is released
  };
  MyRegion& my_region(RegionId region);
  void withdraw(RegionId region, const Lease& lease);
  // nullptr: the offer has not come yet.
  Result<OpenRegion*> open_offered(Peer* peer, const RegionKey& key);
  bool keep_offer(Peer* peer, Incoming* incoming);
  Status hear_of_region(Peer* peer, Incoming incoming);
  Status hand_over(Peer* peer, const Message& offer);
  void hear_withdrawn(Peer* peer, RegionId region, Generation generation);
  void hear_closed(PeerId peer, RegionId region, Generation generation);
  void tell_closed(Peer* peer, RegionId region, Generation generation);
  Message message_about(MessageKind kind, RegionId region, Generation generation) const;
  Status tell(Peer* peer, const Message& message, std::shared_ptr<SharedSegment> memory = nullptr);
  Result<bool> send_unsent(Peer* peer);
  bool forget_if_unread(RegionId region);

  Peer& peer_at(PeerId id) const;
  OpenRegion& opened(PeerId peer, RegionId region) const;
  // This process as its own peer: it holds what the others are given to wake it.
  const Peer& self() const { return *peers_.at(0); }

  const Clock& clock_;
  const JobKey key_;
  const ShmAddress own_address_;
  const pid_t pid_;
  SoleFd listener_;
  UniqueFd setup_set_;  // epoll: what set-up looks at
  UniqueFd wake_set_;   // epoll: what ends a sleep

  Published<Peer, kMaxPeers> peers_;

  mutable std::mutex mutex_;         // what follows, down to the driver's
  std::map<ProcessId, PeerId> ids_;  // they count from 0
  SetUpNews news_;
  std::list<Handshake> handshakes_;  // connected, Hello not yet heard
  Unmet unmet_;
  std::map<RegionId, MyRegion> regions_;  // mine, while peers may have them
  Generation generations_ = 0;
  std::vector<PeerId> blocked_;  // peers with unsent messages

  uint32_t polls_ = 0;  // the driver's
  int64_t next_check_ns_ = 0;
};

// Tags of the epoll sets: what an event is about.
enum class Watched : uint32_t { Listener, News, Wake, Handshake, PeerSocket, PeerProcess };

struct WatchTag {
  Watched what;
  uint32_t index = 0;  // PeerId; of a handshake its descriptor

  uint64_t pack() const { return uint64_t{static_cast<uint32_t>(what)} << 32 | index; }
  static WatchTag unpack(uint64_t packed) {
    return {static_cast<Watched>(packed >> 32), static_cast<uint32_t>(packed)};
  }
};

Status watch(const UniqueFd& set, int fd, uint32_t events, WatchTag tag);
void unwatch(const UniqueFd& set, int fd);

}  // namespace rdmacoll
