// The contract of transport.h. Each transport instantiates it in a file of its own.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/contract/contract.h"
#include "tests/contract/stream.h"

namespace rdmacoll::transport_contract_test {
namespace {

Script check_meeting(Member& member) {
  co_await member.meet();
  EXPECT_EQ(std::set<PeerId>(member.peers.begin(), member.peers.end()).size(), member.peers.size());
  for (int other = 0; other < member.world; ++other) {
    const std::string& address = member.gathered[static_cast<size_t>(other)];
    Result<PeerId> again = member.transport.connect(address, member.deadline());
    REQUIRE_OK(again.status());
    EXPECT_EQ(again.value(), member.peer(other));
    EXPECT_TRUE(member.transport.peer_status(member.peer(other)).ok());
  }
  EXPECT_EQ(member.transport.info().address, member.gathered[static_cast<size_t>(member.rank)]);
  EXPECT_LT(member.transport.info().address.size(), 1024u);
  co_await member.gather("nobody leaves before all have looked");
}

TEST_P(Contract, ProcessesMeetInEveryOrderAndOnce) {
  for (uint64_t seed = 1; seed <= 5; ++seed) kind().run(kind(), world(), seed, check_meeting);
}

// One thread of rank 0 waits in connect(), while its driver asks who calls; rank 1 comes after
// that.
Script ask_who_calls(Member& member) {
  co_await member.gather(member.transport.info().address);
  const std::vector<std::string> addresses = member.gathered;
  const auto connect_to = [&](size_t other) {
    const Status status = member.transport.connect(addresses[other], member.deadline()).status();
    EXPECT_TRUE(status.ok()) << status.message();
  };
  std::jthread waiting;
  if (member.rank == 0) {
    waiting = std::jthread(connect_to, 1);
    for (int i = 0; i < 100; ++i) {
      for (const std::string& address : addresses)
        static_cast<void>(member.transport.called_by(address));
      member.transport.poll();
    }
  }
  co_await member.gather("asked");
  if (member.rank == 1) connect_to(0);
  if (waiting.joinable()) waiting.join();
  co_await member.gather("met");
}

TEST_P(Contract, AskingWhoCallsDoesNotWait) {
  if (kind().is_simulated || world() == 1) return;  // nobody waits there
  run(1, ask_who_calls);
}

Script check_regions(Member& member) {
  co_await member.meet();
  co_await member.share(4096);
  EXPECT_LT(member.region.key.size(), 256u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(member.region.base) % kLineBytes, 0u);
  for (uint64_t i = 0; i < member.region.bytes; ++i) {
    if (member.region.base[i] != std::byte{0}) throw std::runtime_error("the region is not zeroed");
  }
  std::set<std::string> keys{member.region.key};
  for (int i = 0; i < 3; ++i) {
    Result<MadeRegion> another = member.make(64);
    REQUIRE_OK(another.status());
    EXPECT_TRUE(keys.insert(another.value().key).second);
    member.transport.release_region(another.value().id, Release::Keep);
  }
  co_await member.gather("done");
  for (int other = 0; other < member.world; ++other) {
    member.transport.close_region(member.peer(other), member.region_of(other));
  }
}

TEST_P(Contract, RegionsStayZeroedAndKeysDiffer) { run(1, check_regions); }

Script stream(Member& member) {
  const StreamLayout layout{.slot_bytes = member.kind.is_simulated ? 640u : 8'192u, .channels = 2};
  co_await stream_everywhere(member, layout,
                             member.kind.messages / static_cast<uint64_t>(member.world));
}

TEST_P(Contract, WhatASignalFollowsIsSeenWithIt) { run(6, stream); }

// Signals with no flow control at all: the reader may miss values and never sees one go back.
Script watch_a_counter(Member& member) {
  constexpr uint64_t kSignals = 300;
  co_await member.meet();
  co_await member.share(kLineBytes * static_cast<uint64_t>(member.world));
  const int next = (member.rank + 1) % member.world;
  const int before = (member.rank + member.world - 1) % member.world;
  const RemoteSlice line{member.region_of(next), kLineBytes * static_cast<uint64_t>(member.rank),
                         kLineBytes};
  const Line& mine = member.line(kLineBytes * static_cast<uint64_t>(before));
  uint64_t sent = 0;
  uint64_t seen = 0;
  while (sent < kSignals || seen < kSignals) {
    if (sent < kSignals &&
        member.transport.signal(member.peer(next), 0, line, sent + 1, Header{}) != Posted::Full) {
      ++sent;
    }
    const uint64_t now = mine.counter.load(std::memory_order_acquire);
    if (now < seen || now > kSignals) throw std::runtime_error("the counter went astray");
    seen = now;
    co_await member.turn();
  }
  co_await member.gather("done");
}

TEST_P(Contract, ACounterOnlyGrows) { run(8, watch_a_counter); }

// The owner writes its own region and signals; the others read it with get(), and through map()
// where there is one, into the second half of their own.
Script read_from_owner(Member& member) {
  constexpr uint64_t kBytes = 1000;
  constexpr uint64_t kLines = kLineBytes * Board::kRanks;
  co_await member.meet();
  co_await member.share(kLines + 2 * kBytes);
  std::memset(member.region.base + kLines, 0x40 + member.rank, kBytes);
  for (int other = 0; other < member.world; ++other) {
    const RemoteSlice line{member.region_of(other), kLineBytes * static_cast<uint64_t>(member.rank),
                           kLineBytes};
    AWAIT(member,
          member.transport.signal(member.peer(other), 0, line, 1, Header{}) != Posted::Full);
  }
  for (int other = 0; other < member.world; ++other) {
    const Line& line = member.line(kLineBytes * static_cast<uint64_t>(other));
    AWAIT(member, line.counter.load(std::memory_order_acquire) == 1);
    const std::vector<std::byte> expected(kBytes, static_cast<std::byte>(0x40 + other));
    const std::byte* mapped = member.opened[static_cast<size_t>(other)].base;
    EXPECT_EQ(mapped != nullptr, member.kind.maps);
    EXPECT_EQ(member.transport.info().island.empty(), !member.kind.maps);
    if (mapped != nullptr) {
      EXPECT_EQ(std::memcmp(mapped + kLines, expected.data(), kBytes), 0);
    }
    std::byte* got = member.region.base + kLines + kBytes;
    std::memset(got, 0xEE, kBytes);
    co_await member.get(other, kLines, {got, kBytes, member.region.id});
    EXPECT_EQ(std::memcmp(got, expected.data(), kBytes), 0);
  }
  co_await member.gather("done");
}

TEST_P(Contract, WhatTheOwnerWroteBeforeItsSignalCanBeRead) { run(8, read_from_owner); }

// Whoever leaves is missed by all others; before, nobody is.
Script leave_one_by_one(Member& member) {
  co_await member.meet();
  co_await member.gather("all have met");
  for (int leaver = 0; leaver < member.world; ++leaver) {
    if (member.rank == leaver) {
      member.leave();
      break;
    }
    const PeerId peer = member.peer(leaver);
    AWAIT(member, !member.transport.peer_status(peer).ok());
    EXPECT_EQ(member.transport.peer_status(peer).code(), StatusCode::PeerFailed);
    EXPECT_NE(member.transport.peer_status(peer).message().find("left"), std::string::npos)
        << member.transport.peer_status(peer).message();
    EXPECT_TRUE(member.transport.fence(peer, member.deadline()).ok());
    EXPECT_TRUE(member.transport.peer_status(member.peer(member.rank)).ok());
  }
}

TEST_P(Contract, WhoLeavesIsMissed) { run(3, leave_one_by_one); }

Script show_garbage(Member& member) {
  co_await member.meet();
  co_await member.share(64);
  const std::string address = member.transport.info().address;
  const std::string key = member.region.key;
  const PeerId self = member.peer(member.rank);
  const auto refuses = [&](const std::string& bytes) {
    const Deadline now{member.clock.now_ns()};
    EXPECT_EQ(member.transport.connect(bytes, now).status().code(), StatusCode::InvalidArgument);
    EXPECT_EQ(member.transport.open_region(self, bytes, now).status().code(),
              StatusCode::InvalidArgument);
    // In a simulation everybody is heard at once.
    EXPECT_FALSE(member.transport.called_by(bytes));
  };
  for (size_t size = 0; size < address.size(); ++size) refuses(address.substr(0, size));
  for (size_t size = 0; size < key.size(); ++size) refuses(key.substr(0, size));
  refuses(address + "x");
  refuses(key + "x");
  std::minstd_rand random(7);
  for (int i = 0; i < 500; ++i) {
    std::string noise(random() % 300, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    refuses(noise);
  }
  // A true address with one byte changed may name another process, or still this one: any answer
  // will do, as long as it is one.
  for (size_t i = 0; i < address.size(); ++i) {
    std::string changed = address;
    changed[i] = static_cast<char>(changed[i] ^ 0x81);
    const Status status = member.transport.connect(changed, {member.clock.now_ns()}).status();
    EXPECT_TRUE(status.ok() || !status.message().empty());
  }
}

TEST_P(Contract, GarbageIsRefused) { run(1, show_garbage); }

}  // namespace
}  // namespace rdmacoll::transport_contract_test
