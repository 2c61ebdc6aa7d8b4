// shm: who is knocked at, and what others of the same user can do to it by that; and offers that
// make no sense.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cstring>

#include "tests/contract/shm_pair.h"

namespace rdmacoll::shm_knock_test {
namespace {

ProcessId id_of(uint64_t number) {
  ProcessId id{};
  id[0] = 0xFF;  // larger than most
  std::memcpy(id.data() + 8, &number, sizeof(number));
  return id;
}

class ShmKnock : public ::testing::Test {
 protected:
  std::string address_of(const ProcessId& process) const {
    ShmAddress address = parse_shm_address(victim_->info().address).take();
    address.process = process;
    return encode(address);
  }
  ProcessId own_id() const { return parse_shm_address(victim_->info().address).value().process; }
  PeerSocket dial() const { return PeerSocket::dial(socket_name(own_id())).take(); }
  Message message(MessageKind kind, const ProcessId& from) const {
    Message message;
    message.kind = kind;
    message.sender = from;
    return message;
  }
  // Whether somebody calls.
  bool serve() {
    report_.callers.clear();
    victim_->serve(report_);
    return !report_.callers.empty();
  }
  // Whether it is reported.
  bool knock(const ProcessId& from) {
    const PeerSocket socket = dial();
    EXPECT_TRUE(socket.send(message(MessageKind::Knock, from), {}).ok());
    const bool first = serve();  // accepts
    return serve() || first;
  }
  bool is_woken() const { return readable(victim_->info().set_up_fd, 0); }

  const SteadyClock clock_;
  const std::unique_ptr<ShmTransport> victim_ = open_shm(clock_);
  SetUpReport report_;
};

TEST_F(ShmKnock, IsReportedOnceEachTime) {
  const std::string address = address_of(id_of(1));
  EXPECT_FALSE(victim_->called_by(address));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(knock(id_of(1)));
    EXPECT_FALSE(serve());
    EXPECT_TRUE(victim_->called_by(address));
  }
  EXPECT_FALSE(victim_->called_by(address_of(id_of(2))));
  static_cast<void>(serve());  // sees that the last has hung up
  EXPECT_FALSE(is_woken());
}

TEST_F(ShmKnock, AFloodIsForgottenAndHonestOnesMeet) {
  for (uint64_t i = 1; i <= kMaxPeers + 100; ++i) EXPECT_TRUE(knock(id_of(i)));
  EXPECT_FALSE(serve());
  EXPECT_FALSE(victim_->called_by(address_of(id_of(1))));
  EXPECT_TRUE(victim_->called_by(address_of(id_of(kMaxPeers + 100))));
  const auto honest = open_shm(clock_);
  const std::string address = honest->info().address;
  bool has_met = false;
  const Deadline deadline = Deadline::after_ms(clock_, 20'000);
  while (!has_met && !deadline.passed(clock_)) {
    static_cast<void>(honest->connect(victim_->info().address, Deadline{0}));
    serve();
    for (const std::string& caller : report_.callers) {
      if (caller == address) has_met = victim_->connect(caller, Deadline{0}).ok();
    }
  }
  EXPECT_TRUE(has_met);
}

TEST_F(ShmKnock, OfThisProcessItselfOrInTheMiddleOfAHandshakeIsNone) {
  EXPECT_FALSE(knock(own_id()));
  const PeerSocket socket = dial();
  ASSERT_TRUE(socket.send(message(MessageKind::Challenge, id_of(1)), {}).ok());
  EXPECT_FALSE(serve());
  ASSERT_TRUE(socket.send(message(MessageKind::Knock, id_of(1)), {}).ok());
  EXPECT_FALSE(serve() || serve());
  EXPECT_FALSE(victim_->called_by(address_of(id_of(1))));
}

// A peer, of a job without a secret, that nobody here wants.
class ShmOffers : public ShmKnock {
 protected:
  ShmOffers() {
    const SharedSegment control = SharedSegment::create(sizeof(Control)).take();
    const UniqueFd bell(::eventfd(0, EFD_CLOEXEC));
    EXPECT_TRUE(socket_.send(message(MessageKind::Challenge, kRogue), {}).ok());
    EXPECT_TRUE(socket_.send(message(MessageKind::Proof, kRogue), {}).ok());
    EXPECT_TRUE(socket_.send(message(MessageKind::Hello, kRogue), {control.fd(), bell.get()}).ok());
    for (int i = 0; i < 5 && !victim_->called_by(address_of(kRogue)); ++i) serve();
    auto met = victim_->connect(address_of(kRogue), Deadline{0});
    EXPECT_TRUE(met.ok()) << met.status().message();
    peer_ = met.value();
  }
  bool is_lost() {
    EXPECT_FALSE(serve());
    return !victim_->peer_status(peer_).ok();
  }

  static constexpr ProcessId kRogue{};
  const PeerSocket socket_ = dial();
  PeerId peer_ = 0;
};

TEST_F(ShmOffers, ANoteThatSaysNothingEndsThePeer) {
  ASSERT_TRUE(socket_.send(message(MessageKind::Note, kRogue), {}).ok());
  EXPECT_TRUE(is_lost());
  EXPECT_TRUE(report_.offers.empty());
}

TEST_F(ShmOffers, ARegionBeyondTheLimitEndsThePeer) {
  const SharedSegment memory = SharedSegment::create(64).take();
  Message offer = message(MessageKind::Region, kRogue);
  offer.region = kMaxRegions;
  offer.note = 1;
  ASSERT_TRUE(socket_.send(offer, {memory.fd()}).ok());
  EXPECT_TRUE(is_lost());
  EXPECT_TRUE(report_.offers.empty());
}

TEST_F(ShmOffers, MoreThanItsMemoryHoldsIsHandedOverAndNotOpened) {
  const SharedSegment memory = SharedSegment::create(64).take();
  Message offer = message(MessageKind::Region, kRogue);
  offer.region = 3;
  offer.bytes = 1 << 20;
  offer.note = 1;
  ASSERT_TRUE(socket_.send(offer, {memory.fd()}).ok());
  EXPECT_FALSE(is_lost());
  ASSERT_EQ(report_.offers.size(), 1u);
  const Status opened = victim_->open_region(peer_, report_.offers[0].key, Deadline{0}).status();
  EXPECT_EQ(opened.code(), StatusCode::InvalidArgument) << opened.message();
}

}  // namespace
}  // namespace rdmacoll::shm_knock_test
