// verbs: how processes meet through datagrams that may be lost, and what keeps them from meeting.
#include <cerrno>
#include <thread>
#include <vector>

#include "tests/contract/verbs_pair.h"

namespace rdmacoll::verbs_meeting_test {
namespace {

std::unique_ptr<VerbsTransport> open_on(int device, const Clock& clock, const Config& config) {
  auto opened =
      VerbsTransport::open(fake::FakeNetwork::table(), config, clock, ThisProcess::make().take());
  EXPECT_TRUE(opened.ok()) << "device " << device << ": " << opened.status().message();
  return opened.take();
}

// Transports on an emulated network, which is left without leaks.
struct Hall {
  explicit Hall(const fake::NetworkSpec& spec) : network(spec) {}
  ~Hall() {
    transports.clear();
    EXPECT_EQ(network.leaks(), "");
  }
  VerbsTransport& enter(int device, const Config& config) {
    transports.push_back(open_on(device, clock, config));
    return *transports.back();
  }
  VerbsTransport& enter(int device) { return enter(device, on_device(device)); }
  // Both at once.
  void meet(VerbsTransport& one, VerbsTransport& other, Status outcome[2], int64_t within_ms) {
    const Deadline deadline = Deadline::after_ms(clock, within_ms);
    std::thread thread([&] { outcome[1] = other.connect(one.info().address, deadline).status(); });
    outcome[0] = one.connect(other.info().address, deadline).status();
    thread.join();
  }

  PushedClock clock;
  fake::FakeNetwork network;
  std::vector<std::unique_ptr<VerbsTransport>> transports;
};

TEST(VerbsMeeting, HalfOfTheGreetingsMayBeLost) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    fake::NetworkSpec spec = two_devices(seed);
    spec.datagram_loss = 0.5;
    Hall hall(spec);
    Status outcome[2];
    hall.meet(hall.enter(0), hall.enter(1), outcome, 30'000);
    EXPECT_TRUE(outcome[0].ok()) << outcome[0].message();
    EXPECT_TRUE(outcome[1].ok()) << outcome[1].message();
  }
}

TEST(VerbsMeeting, OverInfiniBandToo) {
  fake::NetworkSpec spec;
  spec.devices = {fake::infiniband_device(0), fake::infiniband_device(1)};
  Hall hall(spec);
  Status outcome[2];
  hall.meet(hall.enter(0), hall.enter(1), outcome, 20'000);
  EXPECT_TRUE(outcome[0].ok()) << outcome[0].message();
  EXPECT_TRUE(outcome[1].ok()) << outcome[1].message();
}

TEST(VerbsMeeting, InfiniBandAndEthernetDoNotReachEachOther) {
  fake::NetworkSpec spec;
  spec.devices = {fake::infiniband_device(0), fake::roce_device(1)};
  Hall hall(spec);
  Status outcome[2];
  hall.meet(hall.enter(0), hall.enter(1), outcome, 20'000);
  EXPECT_EQ(outcome[0].code(), StatusCode::Unsupported);
  EXPECT_EQ(outcome[1].code(), StatusCode::Unsupported);
}

TEST(VerbsMeeting, WhoCallsIsHeard) {
  Hall hall(two_devices(1));
  VerbsTransport& one = hall.enter(0);
  VerbsTransport& other = hall.enter(1);
  EXPECT_FALSE(one.called_by(other.info().address));
  Status met;
  std::thread caller([&] {
    met = other.connect(one.info().address, Deadline::after_ms(hall.clock, 20'000)).status();
  });
  while (!one.called_by(other.info().address)) std::this_thread::yield();
  EXPECT_FALSE(one.called_by(one.info().address));
  EXPECT_TRUE(
      one.connect(other.info().address, Deadline::after_ms(hall.clock, 20'000)).status().ok());
  caller.join();
  EXPECT_TRUE(met.ok()) << met.message();
}

TEST(VerbsMeeting, WhoDoesNotComeIsWaitedForAndMayComeLater) {
  Hall hall(two_devices(1));
  VerbsTransport& one = hall.enter(0);
  VerbsTransport& other = hall.enter(1);
  const auto early = one.connect(other.info().address, Deadline::after_ms(hall.clock, 50));
  EXPECT_EQ(early.status().code(), StatusCode::Timeout);
  EXPECT_NE(early.status().message().find("RDMACOLL_GID_INDEX"), std::string::npos)
      << early.status().message();
  Status outcome[2];
  hall.meet(one, other, outcome, 20'000);
  EXPECT_TRUE(outcome[0].ok()) << outcome[0].message();
  EXPECT_TRUE(outcome[1].ok()) << outcome[1].message();
}

TEST(VerbsMeeting, OtherNumbersOfQueuePairsAreAMismatch) {
  Hall hall(two_devices(1));
  Config more = on_device(1);
  more.settings.set("RDMACOLL_IB_QPS", "2");
  Status outcome[2];
  hall.meet(hall.enter(0), hall.enter(1, more), outcome, 20'000);
  for (const Status& one : outcome) {
    EXPECT_EQ(one.code(), StatusCode::Mismatch) << one.message();
    EXPECT_NE(one.message().find("RDMACOLL_IB_QPS"), std::string::npos) << one.message();
  }
}

TEST(VerbsMeeting, WhatTheDeviceRefusesIsSaidAndLeavesNothing) {
  Hall hall(two_devices(1));
  VerbsTransport& one = hall.enter(0);
  VerbsTransport& other = hall.enter(1);
  const auto connect = [&] {
    return one.connect(other.info().address, Deadline::after_ms(hall.clock, 20'000)).status();
  };
  hall.network.refuse_registrations("fake0", ENOMEM);
  EXPECT_NE(connect().message().find("Cannot allocate memory"), std::string::npos)
      << connect().message();
  hall.network.refuse_registrations("fake0", 0);
  hall.network.refuse_queue_pairs("fake0", EAGAIN);
  EXPECT_EQ(connect().code(), StatusCode::System) << connect().message();
  hall.network.refuse_queue_pairs("fake0", 0);
  Status outcome[2];
  hall.meet(one, other, outcome, 20'000);
  EXPECT_TRUE(outcome[0].ok()) << outcome[0].message();
  EXPECT_TRUE(outcome[1].ok()) << outcome[1].message();
}

TEST(VerbsMeeting, AnAddressThatNobodyHasIsSaid) {
  fake::NetworkSpec spec = two_devices(1);
  Hall hall(spec);
  VerbsTransport& one = hall.enter(0);
  std::string address = hall.enter(1).info().address;
  const std::string gid("\xff\xff\x0a\x00\x00\x02", 6);
  ASSERT_NE(address.find(gid), std::string::npos);
  address[address.find(gid) + 5] = 99;
  const auto outcome = one.connect(address, Deadline::after_ms(hall.clock, 20'000));
  EXPECT_EQ(outcome.status().code(), StatusCode::System);
  EXPECT_NE(outcome.status().message().find("RDMACOLL_GID_INDEX"), std::string::npos)
      << outcome.status().message();
}

// A worldful, pair by pair, on few devices, with threads of each meeting at the same time.
TEST(VerbsMeeting, ThreadsMayMeetAtTheSameTime) {
  constexpr size_t kProcesses = 6;
  fake::NetworkSpec spec = two_devices(3);
  spec.datagram_loss = 0.2;
  Hall hall(spec);
  for (size_t i = 0; i < kProcesses; ++i) hall.enter(static_cast<int>(i % 2));
  std::vector<std::thread> threads;
  for (size_t from = 0; from < kProcesses; ++from) {
    for (size_t to = 0; to < kProcesses; ++to) {
      threads.emplace_back([&, from, to] {
        const Deadline deadline = Deadline::after_ms(hall.clock, 60'000);
        const auto met =
            hall.transports[from]->connect(hall.transports[to]->info().address, deadline);
        EXPECT_TRUE(met.status().ok()) << met.status().message();
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rdmacoll::verbs_meeting_test
