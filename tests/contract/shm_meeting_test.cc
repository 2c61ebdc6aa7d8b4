// shm: who can be met, what a rogue can send, and what is left behind.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tests/contract/shm_pair.h"

namespace rdmacoll::shm_meeting_test {
namespace {

size_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST(ShmMeeting, AnotherHostIsNotReachedAndTheErrorNamesBoth) {
  const SteadyClock clock;
  Config here, there;
  here.host_id = "alpha";
  there.host_id = "beta";
  const auto mine = open_shm(clock, here);
  const auto theirs = open_shm(clock, there);
  const Status status =
      mine->connect(theirs->info().address, Deadline::after_ms(clock, 10'000)).status();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  for (const char* word : {"alpha", "beta", "RDMACOLL_HOST_ID"}) {
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
}

TEST(ShmMeeting, AHostIdThatIsTooLongIsRefused) {
  Config config;
  config.host_id.assign(300, 'x');
  EXPECT_EQ(ShmTransport::open(config, SteadyClock(), ThisProcess::make().take()).status().code(),
            StatusCode::InvalidArgument);
}

// The smaller process id dials, the other knocks: both see at once that nobody is there.
TEST(ShmMeeting, AProcessThatEndedIsAnError) {
  const SteadyClock clock;
  const auto id = [](const auto& transport) {
    return parse_shm_address(transport->info().address).value().process;
  };
  for (const bool smaller_stays : {true, false}) {
    auto stays = open_shm(clock);
    auto ends = open_shm(clock);
    if ((id(stays) < id(ends)) != smaller_stays) std::swap(stays, ends);
    const std::string address = ends->info().address;
    ends.reset();
    const Status status = stays->connect(address, Deadline{0}).status();
    EXPECT_EQ(status.code(), StatusCode::PeerFailed) << status.message();
  }
}

TEST(ShmMeeting, AnUnknownOrForeignRegionIsAnError) {
  ShmPair pair;
  const Deadline soon = Deadline::after_ms(pair.clock, 20);
  EXPECT_EQ(pair.transport[0]->open_region(pair.peer[0], pair.region[0].key, soon).status().code(),
            StatusCode::InvalidArgument);
  const MadeRegion kept = make_region(*pair.transport[1], 1, 64).take();
  EXPECT_EQ(pair.transport[0]->open_region(pair.peer[0], kept.key, soon).status().code(),
            StatusCode::Timeout);
}

// Both hear it, soon, whoever of them dials.
TEST(ShmMeeting, AProcessWithAnotherSecretOrNoneIsRefusedOnBothSides) {
  const SteadyClock clock;
  Config one, other;
  one.secret.text = "the secret of the job";
  for (const char* secret : {"the secret of another", ""}) {
    other.secret.text = secret;
    const std::unique_ptr<ShmTransport> ends[] = {open_shm(clock, one), open_shm(clock, other)};
    const Deadline deadline = Deadline::after_ms(clock, 20'000);
    Status outcome[2];
    std::thread thread(
        [&] { outcome[1] = ends[1]->connect(ends[0]->info().address, deadline).status(); });
    outcome[0] = ends[0]->connect(ends[1]->info().address, deadline).status();
    thread.join();
    for (const Status& status : outcome) {
      EXPECT_EQ(status.code(), StatusCode::Mismatch) << status.message();
      EXPECT_NE(status.message().find("did not prove that it knows the secret of this job"),
                std::string::npos)
          << status.message();
      EXPECT_NE(status.message().find("RDMACOLL_SECRET_FILE"), std::string::npos);
    }
    EXPECT_FALSE(deadline.passed(clock));
  }
}

TEST(ShmMeeting, ProcessesWithOneSecretMeet) {
  const SteadyClock clock;
  Config config;
  config.secret.text = "the secret of the job";
  const auto mine = open_shm(clock, config), theirs = open_shm(clock, config);
  const Deadline deadline = Deadline::after_ms(clock, 20'000);
  std::thread thread(
      [&] { EXPECT_TRUE(theirs->connect(mine->info().address, deadline).status().ok()); });
  const Status met = mine->connect(theirs->info().address, deadline).status();
  thread.join();
  EXPECT_TRUE(met.ok()) << met.message();
}

TEST(ShmMeeting, TwoThreadsMayMeetAndShareAtTheSameTime) {
  const SteadyClock clock;
  const auto a = open_shm(clock);
  const auto b = open_shm(clock);
  const auto work = [&](ShmTransport& mine, ShmTransport& theirs) {
    const Deadline deadline = Deadline::after_ms(clock, 20'000);
    Result<PeerId> peer = mine.connect(theirs.info().address, deadline);
    ASSERT_TRUE(peer.ok()) << peer.status().message();
    const Region region = make_region(mine, 0, 64).take();
    EXPECT_TRUE(mine.offer_region(peer.value(), region.id, kNoNote).ok());
    mine.poll();
    mine.release_region(region.id, Release::Keep);
  };
  std::thread threads[] = {std::thread(work, std::ref(*a), std::ref(*b)),
                           std::thread(work, std::ref(*b), std::ref(*a)), std::thread([&] {
                             const Deadline deadline = Deadline::after_ms(clock, 20'000);
                             EXPECT_TRUE(a->connect(b->info().address, deadline).ok());
                           })};
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(a->connect(b->info().address, Deadline::after_ms(clock, 1)).value(), 1u);
}

TEST(ShmMeeting, RanksOfOneProcessShareTheOwnersPointerAndItOutlivesTheOwner) {
  ShmPair pair;
  std::byte* mapped = pair.mapped[0];
  EXPECT_EQ(mapped, pair.region[1].base);
  pair.transport[1].reset();
  mapped[100] = std::byte{1};
  EXPECT_EQ(mapped[100], std::byte{1});
}

TEST(ShmMeeting, NothingIsLeftBehind) {
  const size_t descriptors = entries("/proc/self/fd");
  const size_t shared_files = entries("/dev/shm");
  {
    ShmPair pair;
    // Offered and never opened.
    const Region region = make_region(*pair.transport[0], 1, 1 << 20).take();
    EXPECT_TRUE(pair.transport[0]->offer_region(pair.peer[0], region.id, kNoNote).ok());
    EXPECT_EQ(entries("/dev/shm"), shared_files);
  }
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
}

TEST(ShmMeeting, TheExitOfAForkedChildDisturbsNobody) {
  ShmPair pair;
  const pid_t child = ::fork();
  if (child == 0) {
    pair.transport[0].reset();
    pair.transport[1].reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 2; ++i) {
    pair.transport[i]->arm();
    pair.transport[i]->disarm();  // looks for failures
    EXPECT_TRUE(pair.transport[i]->peer_status(pair.peer[i]).ok());
    pair.signal(i, 1);
    EXPECT_EQ(pair.counter(1 - i), 1u);
  }
}

// A process that speaks the protocol up to a point. It must dial; it hears no knock.
struct Rogue : SilentProcess {
  explicit Rogue(ShmTransport& victim) : socket(dial(victim)) {
    control = std::make_unique<SharedSegment>(SharedSegment::create(sizeof(Control)).take());
  }
  static PeerSocket dial(ShmTransport& victim) {
    const ShmAddress address = parse_shm_address(victim.info().address).take();
    return PeerSocket::dial(socket_name(address.process)).take();
  }
  std::string address(ShmTransport& victim) const {
    ShmAddress copy = parse_shm_address(victim.info().address).take();
    copy.process = id;
    return encode(copy);
  }
  Message message(MessageKind kind) const {
    Message message;
    message.kind = kind;
    message.sender = id;
    return message;
  }
  // What a process of a job without a secret says before its Hello: nothing of it depends on the
  // answers.
  void introduce_itself() {
    EXPECT_TRUE(socket.send(message(MessageKind::Challenge), {}).ok());
    EXPECT_TRUE(socket.send(message(MessageKind::Proof), {}).ok());
  }
  void hello() {
    introduce_itself();
    const UniqueFd bell(::eventfd(0, EFD_CLOEXEC));
    EXPECT_TRUE(socket.send(message(MessageKind::Hello), {control->fd(), bell.get()}).ok());
  }

  PeerSocket socket;
  std::unique_ptr<SharedSegment> control;
};

class ShmRogue : public ::testing::Test {
 protected:
  Result<PeerId> connect(int64_t timeout_ms) {
    return victim_->connect(rogue_.address(*victim_), Deadline::after_ms(clock_, timeout_ms));
  }
  Status open(PeerId peer, RegionId region, uint64_t bytes) {
    const std::string key = encode(RegionKey{rogue_.id, region, 0, bytes});
    return victim_->open_region(peer, key, Deadline::after_ms(clock_, 10'000)).status();
  }
  const SteadyClock clock_;
  const std::unique_ptr<ShmTransport> victim_ = open_shm(clock_);
  Rogue rogue_{*victim_};
};

TEST_F(ShmRogue, ARegionThatClaimsMoreThanItsMemoryHoldsIsRefused) {
  rogue_.hello();
  Result<PeerId> peer = connect(10'000);
  ASSERT_TRUE(peer.ok()) << peer.status().message();
  const SharedSegment memory = SharedSegment::create(4096).take();
  Message region = rogue_.message(MessageKind::Region);
  region.region = 5;
  region.bytes = 1 << 20;
  ASSERT_TRUE(rogue_.socket.send(region, {memory.fd()}).ok());
  EXPECT_EQ(open(peer.value(), 5, 1 << 20).code(), StatusCode::InvalidArgument);
  // True to its memory, but not to the key.
  region.region = 6;
  region.bytes = 4096;
  ASSERT_TRUE(rogue_.socket.send(region, {memory.fd()}).ok());
  EXPECT_EQ(open(peer.value(), 6, 8192).code(), StatusCode::InvalidArgument);
  // And an honest one, which still works.
  ASSERT_TRUE(rogue_.socket.send(region, {memory.fd()}).ok());
  EXPECT_TRUE(open(peer.value(), 6, 4096).ok());
}

TEST_F(ShmRogue, NonsenseEndsThePeerAndNotTheProcess) {
  rogue_.hello();
  Result<PeerId> peer = connect(10'000);
  ASSERT_TRUE(peer.ok());
  ASSERT_EQ(::send(rogue_.socket.fd(), "nonsense", 8, 0), 8);
  EXPECT_EQ(open(peer.value(), 0, 64).code(), StatusCode::PeerFailed);
  EXPECT_EQ(victim_->peer_status(peer.value()).code(), StatusCode::PeerFailed);
  // It may still hold mappings, so it is not fenced.
  EXPECT_EQ(victim_->fence(peer.value(), {0}).code(), StatusCode::Unsupported);
}

TEST_F(ShmRogue, ARegionIdBeyondTheLimitEndsThePeer) {
  rogue_.hello();
  Result<PeerId> peer = connect(10'000);
  ASSERT_TRUE(peer.ok());
  const SharedSegment memory = SharedSegment::create(64).take();
  Message region = rogue_.message(MessageKind::Region);
  region.region = kMaxRegions;
  region.bytes = 64;
  ASSERT_TRUE(rogue_.socket.send(region, {memory.fd()}).ok());
  EXPECT_EQ(open(peer.value(), 0, 64).code(), StatusCode::PeerFailed);
}

TEST_F(ShmRogue, WhoDoesNotSayHelloIsNotMet) {
  EXPECT_EQ(connect(30).status().code(), StatusCode::Timeout);
  ASSERT_EQ(::send(rogue_.socket.fd(), "nonsense", 8, 0), 8);
  EXPECT_EQ(connect(30).status().code(), StatusCode::Timeout);
}

TEST_F(ShmRogue, WhoSaysHelloWithoutAProofIsNotMet) {
  const UniqueFd bell(::eventfd(0, EFD_CLOEXEC));
  const Message hello = rogue_.message(MessageKind::Hello);
  ASSERT_TRUE(rogue_.socket.send(hello, {rogue_.control->fd(), bell.get()}).ok());
  EXPECT_EQ(connect(30).status().code(), StatusCode::Timeout);
}

TEST_F(ShmRogue, AHelloWithoutASealedControlSegmentIsNotMet) {
  rogue_.introduce_itself();
  const UniqueFd bell(::eventfd(0, EFD_CLOEXEC));
  const Message hello = rogue_.message(MessageKind::Hello);
  ASSERT_TRUE(rogue_.socket.send(hello, {bell.get(), bell.get()}).ok());
  EXPECT_EQ(connect(30).status().code(), StatusCode::Timeout);
}

}  // namespace
}  // namespace rdmacoll::shm_meeting_test
