// A process of the job that says what it likes to a whole transport, over two connections. What
// lies around the transport's regions is untouched, and a peer is only lost with an error.
#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "csrc/transport/tcp/connection/address.h"
#include "csrc/transport/tcp/connection/half_open.h"
#include "csrc/transport/tcp/network/sockets.h"
#include "csrc/transport/tcp/transport.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tcp_steps.h"

namespace rdmacoll::fuzz {
namespace {

using tcp::FrameHead;
using tcp::FrameKind;
using tcp::HalfOpen;

constexpr uint8_t kStreams = 2;
constexpr uint64_t kGuard = 4096, kRegionBytes = 4096;
constexpr RegionId kLines = 0, kPart = 1, kBriefly = 2;
// What a step does beside saying its frame.
constexpr uint8_t kOtherStream = 1, kPolls = 2, kGets = 4, kSaysNothing = 8, kReleases = 16,
                  kLends = 32, kUpdates = 64;

// One transport, for some hundred inputs; each is another peer.
class Victim {
 public:
  Victim() {
    Config config;
    config.settings.set("RDMACOLL_SOCKET_IFNAME", "=lo");
    config.settings.set("RDMACOLL_TCP_STREAMS", std::to_string(kStreams));
    transport = TcpTransport::open(config, clock_, ThisProcess::make().take()).take();
    memory_ = std::make_shared<SharedSegment>(
        SharedSegment::create(2 * kRegionBytes + 3 * kGuard).take());
    base = memory_->data() + kGuard;
    add(kLines, kGuard, Access::Full);
    add(kPart, 2 * kGuard + kRegionBytes, Access::PutOnly);
  }
  void add(RegionId id, uint64_t offset, Access access) {
    const RegionMemory memory{memory_, offset, kRegionBytes, access};
    const std::string key = transport->register_region(id, memory).take();
    if (access == Access::Full) generation = tcp::parse_region_key(key).value().generation;
  }
  bool is_intact() const {
    const std::byte* const all = memory_->data();
    const auto zeros = [](const std::byte* at) {
      static const std::byte nothing[kGuard] = {};
      return std::memcmp(at, nothing, kGuard) == 0;
    };
    return zeros(all) && zeros(all + kGuard + kRegionBytes) &&
           zeros(all + 2 * (kGuard + kRegionBytes));
  }
  // Meets a new process, whose connections these are.
  PeerId meet(HalfOpen (&rogue)[kStreams], const ProcessId& id) {
    tcp::Address address = tcp::parse_address(transport->info().address).take();
    address.process = id;
    const std::string bytes = encode(address);
    for (HalfOpen& connection : rogue) {
      HalfOpen::Progress progress;
      while ((progress = connection.advance(key_)) == HalfOpen::Progress::Waits) {
        static_cast<void>(transport->called_by(bytes));
      }
      RDMACOLL_CHECK(progress == HalfOpen::Progress::Met);
    }
    return transport->connect(bytes, Deadline::after_ms(clock_, 10'000)).take();
  }
  tcp::Address address() const { return tcp::parse_address(transport->info().address).take(); }
  Deadline soon() const { return Deadline::after_ms(clock_, 1'000); }

  std::unique_ptr<TcpTransport> transport;
  std::byte* base = nullptr;
  Generation generation = 0;

 private:
  const SteadyClock clock_;
  const JobKey key_;
  std::shared_ptr<SharedSegment> memory_;
};

HalfOpen dial(const tcp::Address& to, const ProcessId& me, uint8_t stream) {
  SoleFd fd = tcp::begin_dialling(to.endpoints[0]);
  RDMACOLL_CHECK(fd.valid());
  // A reset at the end: no port is left waiting.
  const linger none{1, 0};
  RDMACOLL_CHECK(::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none)) == 0);
  return HalfOpen(std::move(fd), tcp::Handshake::dialling({me, 1, "peer", {}}, to.process, stream,
                                                          kStreams, random_process_id().take()));
}

// A key opens a region of the peer or is refused, and closes.
void take_offers(TcpTransport& transport, PeerId peer, const ProcessId& process) {
  SetUpReport report;
  transport.serve(report);
  for (const RegionOffer& offer : report.offers) {
    RDMACOLL_CHECK(offer.peer == peer && offer.note != kNoNote);
    if (offer.key.empty()) continue;
    const tcp::RegionKey key = tcp::parse_region_key(offer.key).take();
    RDMACOLL_CHECK(key.owner == process);
    const Result<Region> opened = transport.open_region(peer, offer.key, Deadline{0});
    if (!opened.ok()) check_error(opened.status());
    transport.close_region(peer, key.region);
  }
}

TcpStep step(uint8_t what, FrameKind kind, RegionId region, const std::string& behind) {
  return {what, {.kind = kind, .generation = 1, .region = region}, behind};
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string signal(tcp::kSignalHeadBytes, 's');
  tcp::MarkBody mark{};
  mark.puts[0] = 1;
  const auto put = step(kOtherStream | kPolls, FrameKind::Put, kLines, "payload").encode();
  const FrameHead into_lent{.kind = FrameKind::Put, .region = tcp::kFirstPlacement, .number = 1};
  FrameHead got{.kind = FrameKind::Got, .number = 1};
  return {
      step(kPolls, FrameKind::Mark, 0, bytes_of(mark)).encode() + put +
          step(kPolls, FrameKind::Signal, kLines, signal).encode(),
      step(kPolls, FrameKind::Put, kPart, "part").encode() +
          step(kPolls, FrameKind::Get, kLines, bytes_of(tcp::GetBody{64})).encode(),
      TcpStep{kGets | kSaysNothing | kPolls, {}, ""}.encode() +
          TcpStep{kPolls, got, "8 bytes!"}.encode(),
      step(kPolls, FrameKind::Update, kLines, bytes_of(tcp::UpdateBody{1, 0, 0})).encode() +
          TcpStep{kUpdates | kSaysNothing | kPolls, {}, ""}.encode() +
          TcpStep{kPolls, {.kind = FrameKind::Updated, .number = 1}, "8 bytes!"}.encode(),
      TcpStep{kReleases | kPolls,
              {.kind = FrameKind::Closed, .region = kBriefly},
              bytes_of(tcp::RegionNotice{3})}
              .encode() +
          step(kPolls, FrameKind::Withdrawn, 9, bytes_of(tcp::RegionNotice{1})).encode() +
          step(kPolls, FrameKind::Bye, 0, "").encode(),
      step(0, FrameKind::Offered, 9, bytes_of(tcp::OfferBody{7, 1, 64})).encode() +
          step(0, FrameKind::Offered, kNoRegion, bytes_of(tcp::OfferBody{8, 0, 0})).encode() +
          step(kPolls, FrameKind::Withdrawn, 9, bytes_of(tcp::RegionNotice{1})).encode(),
      TcpStep{kLends | kPolls, into_lent, "too soon"}.encode() +
          TcpStep{kLends | kOtherStream | kPolls, into_lent, "payload"}.encode(),
  };
}

void run(const std::string& bytes) {
  static std::unique_ptr<Victim> victim;
  static uint32_t number = 0;
  if (number++ % 200 == 0) victim = std::make_unique<Victim>();
  TcpTransport& transport = *victim->transport;
  ProcessId id{};  // smaller than any that is drawn, so that the victim waits for it
  std::memcpy(&id[12], &number, sizeof(number));
  HalfOpen rogue[kStreams] = {dial(victim->address(), id, 0), dial(victim->address(), id, 1)};
  const PeerId peer = victim->meet(rogue, id);
  const auto key = encode(tcp::RegionKey{id, 5, 1, 64});
  RDMACOLL_CHECK(transport.open_region(peer, key, victim->soon()).ok());
  std::string_view input = bytes;
  TcpStep step;
  uint64_t said[kStreams] = {};
  Ticket ticket;
  Placement lent;
  while (TcpStep::take(&input, &step)) {
    const size_t stream = step.what & kOtherStream;
    // The victim counts its uses of ids; an input knows only the first.
    if (step.head.generation == 1) step.head.generation = static_cast<uint16_t>(victim->generation);
    if ((step.what & kSaysNothing) == 0) {
      const std::string frame = step.frame(rogue[stream].handshake().keys().out, said[stream]++);
      static_cast<void>(
          ::send(rogue[stream].fd(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    }
    if ((step.what & kGets) != 0) {
      transport.get(peer, 0, {5, 0, 8}, {victim->base, 8, kLines}, &ticket);
    }
    if ((step.what & kUpdates) != 0) {
      transport.update(peer, 0, {5, 8, 8}, Update::add(1), {victim->base, 8, kLines}, &ticket);
    }
    if ((step.what & kReleases) != 0 && transport.is_reusable(kBriefly)) {
      const auto memory =
          std::make_shared<SharedSegment>(SharedSegment::create(kRegionBytes).take());
      static_cast<void>(transport.register_region(kBriefly, RegionMemory::all_of(memory)));
      static_cast<void>(transport.offer_region(peer, kBriefly, kNoNote));
      transport.release_region(kBriefly, Release::Withdraw);
    }
    if ((step.what & kLends) != 0) {
      if (lent.is_given()) transport.end_placement(lent);
      lent = transport.begin_placement(peer, victim->base, kRegionBytes);
    }
    if ((step.what & kPolls) != 0) transport.poll();
  }
  transport.poll();
  take_offers(transport, peer, id);
  if (lent.is_given()) transport.end_placement(lent);
  RDMACOLL_CHECK(victim->is_intact());
  if (const Status status = transport.peer_status(peer); !status.ok()) check_error(status);
  for (HalfOpen& connection : rogue) connection.take_fd();
  RDMACOLL_CHECK(transport.fence(peer, victim->soon()).ok());
}

}  // namespace rdmacoll::fuzz
