// verbs: handshakes of this job are heard; those of others, and those said again elsewhere, are
// not.
#include <poll.h>

#include <bit>
#include <thread>

#include "csrc/transport/verbs/connection/listener.h"
#include "csrc/transport/verbs/connection/queue_pair.h"
#include "tests/contract/verbs_pair.h"

namespace rdmacoll::verbs_handshake_test {
namespace {

using verbs::Address;
using verbs::Hello;

const std::string kSecret = "the secret of the job";

Config with_secret(int device, const std::string& secret) {
  Config config = on_device(device);
  config.secret.text = secret;
  return config;
}

std::unique_ptr<VerbsTransport> open(const Clock& clock, int device, const std::string& secret) {
  auto opened = VerbsTransport::open(fake::FakeNetwork::table(), with_secret(device, secret), clock,
                                     ThisProcess::make().take());
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.take();
}

Address card_of(const VerbsTransport& transport) {
  return verbs::parse_address(transport.info().address).take();
}

// What meeting came to on both sides.
struct Met {
  Met(const Clock& clock, VerbsTransport& one, VerbsTransport& other, int64_t within_ms) {
    const Deadline deadline = Deadline::after_ms(clock, within_ms);
    std::thread thread([&] { outcome[1] = other.connect(one.info().address, deadline).status(); });
    outcome[0] = one.connect(other.info().address, deadline).status();
    thread.join();
  }
  Status outcome[2];
};

// Somebody on the network who knows a listener, and sends what it likes.
class Rogue {
 public:
  Rogue() {
    auto device = Device::open(table_, config_);
    EXPECT_TRUE(device.ok()) << device.status().message();
    device_ = device.take();
    listener_ = verbs::ConnectionListener::open(table_, *device_).take();
  }
  ~Rogue() {
    if (way_ != nullptr) table_.destroy_ah(way_);
  }
  void send(const Address& to, const Hello& hello) {
    ibv_ah_attr vector = verbs::address_vector(*device_, to.port, VerbsConfig());
    if (way_ == nullptr) way_ = table_.create_ah(device_->pd(), &vector);
    listener_->send(way_, to.listener, to.listener_key, &hello, sizeof(hello));
  }

 private:
  const VerbsTable table_ = fake::FakeNetwork::table();
  const Config config_ = on_device(1);
  std::unique_ptr<Device> device_;
  ibv_ah* way_ = nullptr;
  std::unique_ptr<verbs::ConnectionListener> listener_;
};

Hello handshake(const Address& from, const Address& to, const std::string& secret) {
  Hello hello = Hello::from_process(from);
  hello.to = to.process;
  hello.stripes = 1;
  hello.numbers[0] = 17;
  hello.knows = Hello::Knows::Yours;
  EXPECT_TRUE(hello.sign(JobKey::load(secret).take()).ok());
  return hello;
}

TEST(VerbsHandshake, EveryByteIsSigned) {
  const JobKey key = JobKey::load(kSecret).take();
  Address from, to;
  from.process = {1};
  to.process = {2};
  const Hello hello = handshake(from, to, kSecret);
  EXPECT_TRUE(hello.holds(key));
  EXPECT_FALSE(hello.holds(JobKey::load("the secret of another").take()));
  EXPECT_FALSE(hello.holds(JobKey()));
  EXPECT_FALSE(handshake(from, to, "").holds(key));
  for (size_t at = 0; at < sizeof(hello); ++at) {
    auto bytes = std::bit_cast<std::array<uint8_t, sizeof(Hello)>>(hello);
    bytes[at] ^= 1;
    EXPECT_FALSE(std::bit_cast<Hello>(bytes).holds(key)) << "byte " << at;
  }
}

TEST(VerbsHandshake, ProcessesWithOneSecretMeetThoughGreetingsAreLost) {
  fake::NetworkSpec spec = two_devices(1);
  spec.datagram_loss = 0.5;
  fake::FakeNetwork network(spec);
  const SteadyClock clock;
  const auto one = open(clock, 0, kSecret), other = open(clock, 1, kSecret);
  for (const Status& status : Met(clock, *one, *other, 30'000).outcome) {
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(VerbsHandshake, AProcessWithAnotherSecretOrNoneIsNotMetAndBothSidesSayWhy) {
  for (const char* secret : {"the secret of another", ""}) {
    fake::FakeNetwork network(two_devices(1));
    const SteadyClock clock;
    const auto one = open(clock, 0, kSecret), other = open(clock, 1, secret);
    for (const Status& status : Met(clock, *one, *other, 500).outcome) {
      EXPECT_EQ(status.code(), StatusCode::Mismatch) << status.message();
      for (const char* word : {"with the secret of this job", "RDMACOLL_SECRET_FILE"}) {
        EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
      }
    }
  }
}

// What it sends would join queue pairs to nowhere, if it were heard; the real one meets all the
// same.
TEST(VerbsHandshake, OneThatIsForgedOrSaidAgainIsNotHeard) {
  fake::FakeNetwork network(two_devices(1));
  const SteadyClock clock;
  const auto real = open(clock, 1, kSecret);
  const Address from = card_of(*real);
  Address earlier;  // an endpoint of an earlier job, with the same secret
  earlier.process = {1};
  Hello redirected = handshake(from, earlier, kSecret);
  const auto victim = open(clock, 0, kSecret);
  const Address to = card_of(*victim);
  redirected.to = to.process;
  Rogue rogue;
  for (const Hello& hello : {handshake(from, to, "the secret of another"), handshake(from, to, ""),
                             handshake(from, earlier, kSecret), redirected}) {
    Status outcome;
    std::thread waiting([&] {
      outcome = victim->connect(real->info().address, Deadline::after_ms(clock, 200)).status();
    });
    const Deadline enough = Deadline::after_ms(clock, 150);
    while (!enough.passed(clock)) {
      rogue.send(to, hello);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    waiting.join();
    EXPECT_FALSE(outcome.ok());
    EXPECT_FALSE(victim->called_by(real->info().address));
  }
  for (const Status& status : Met(clock, *victim, *real, 20'000).outcome) {
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// One side calls, and half of what both say is lost: who is called says it again by itself.
TEST(VerbsHandshake, OneThatIsCalledMeetsThoughGreetingsAreLost) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    fake::NetworkSpec spec = two_devices(seed);
    spec.datagram_loss = 0.5;
    fake::FakeNetwork network(spec);
    const SteadyClock clock;
    const auto caller = open(clock, 0, kSecret), callee = open(clock, 1, kSecret);
    SetUpReport report;
    bool has_met[2] = {};
    const Deadline deadline = Deadline::after_ms(clock, 30'000);
    while (!(has_met[0] && has_met[1]) && !deadline.passed(clock)) {
      has_met[0] = caller->connect(callee->info().address, Deadline{0}).ok();
      pollfd waited{callee->info().set_up_fd, POLLIN, 0};
      if (::poll(&waited, 1, 1) != 1) continue;
      callee->serve(report);
      for (const std::string& address : std::exchange(report.callers, {})) {
        EXPECT_EQ(address, caller->info().address);
        EXPECT_TRUE(callee->called_by(address));
        has_met[1] = callee->connect(address, Deadline{0}).ok();
      }
    }
    EXPECT_TRUE(has_met[0] && has_met[1]);
  }
}

// Of processes of the job that nobody here knows; anybody may say again what they have signed.
TEST(VerbsHandshake, ACallIsReportedOnceHoweverOftenItIsSaid) {
  fake::FakeNetwork network(two_devices(1));
  const SteadyClock clock;
  const auto victim = open(clock, 0, kSecret);
  const Address to = card_of(*victim);
  Rogue rogue;
  const auto stranger = [&](uint8_t number) {
    Address from = to;
    from.process = {number};
    return from;
  };
  SetUpReport report;
  const auto until_heard = [&](const Address& from) {
    const Deadline deadline = Deadline::after_ms(clock, 20'000);
    while (!victim->called_by(encode(from)) && !deadline.passed(clock)) {
      victim->serve(report);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    victim->serve(report);
  };
  for (int i = 0; i < 10; ++i) {
    rogue.send(to, handshake(stranger(1), to, kSecret));
    rogue.send(to, handshake(stranger(2), to, "the secret of another"));
  }
  until_heard(stranger(1));
  EXPECT_EQ(report.callers.size(), 1u);
  rogue.send(to, handshake(stranger(3), to, kSecret));
  until_heard(stranger(3));  // and so all that was sent before
  EXPECT_EQ(report.callers.size(), 2u);
  EXPECT_FALSE(victim->called_by(encode(stranger(2))));
  victim->serve(report);
  EXPECT_EQ(report.callers.size(), 2u);
  pollfd waited{victim->info().set_up_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&waited, 1, 0), 0);
}

}  // namespace
}  // namespace rdmacoll::verbs_handshake_test
