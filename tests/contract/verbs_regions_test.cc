// verbs: regions come and go; memory stays registered while a living peer may write to it, and not
// longer.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/contract/verbs_pair.h"

namespace rdmacoll::verbs_regions_test {
namespace {

size_t registered(VerbsPair& pair, int rank) {
  const fake::Wire::Hold hold(pair.network.wire);
  const auto& memory = pair.network.registry.memory;
  return static_cast<size_t>(std::count_if(memory.begin(), memory.end(), [&](const auto& entry) {
    return entry.second->addr == pair.region[rank].base;
  }));
}

TEST(VerbsRegions, StayUntilTheirReadersHaveClosedThem) {
  VerbsPair pair;
  pair.at(1).release_region(pair.region[1].id, Release::Keep);
  for (int i = 0; i < 100; ++i) pair.poll();
  ASSERT_EQ(registered(pair, 1), 1u);
  // A late write finds memory that nobody looks at.
  Ticket ticket;
  ASSERT_EQ(pair.put(0, 1000, 4096, 4096, &ticket), Posted::Pending);
  EXPECT_TRUE(pair.until([&] { return ticket.done(); }));
  pair.signal(0, 1);
  pair.at(0).close_region(pair.peer[0], pair.region[1].id);
  EXPECT_TRUE(pair.until([&] { return registered(pair, 1) == 0; }));
  EXPECT_TRUE(pair.status(0).ok() && pair.status(1).ok());
}

TEST(VerbsRegions, GoAtOnceWhenTheirReadersAreGone) {
  VerbsPair pair;
  pair.network.kill("fake0");
  pair.at(1).release_region(pair.region[1].id, Release::Keep);
  EXPECT_TRUE(pair.until([&] {
    pair.clock.push_ms(20);
    return !pair.status(1).ok();
  }));
  EXPECT_TRUE(pair.until([&] { return registered(pair, 1) == 0; }));
}

// A large put goes over several queue pairs. Only a signal would order these, and none is sent
// here.
TEST(VerbsRegions, AreClosedAfterThePutsOnEveryStripe) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    VerbsPair pair({.seed = seed, .queue_pairs = 4, .region_bytes = 1 << 20});
    const RegionId id = pair.region[1].id;
    std::memset(pair.region[0].base, 0x77, 1 << 20);
    Ticket ticket;
    ASSERT_EQ(pair.put(0, 1 << 20, 0, 0, &ticket), Posted::Pending);
    pair.at(1).release_region(id, Release::Keep);
    pair.at(0).close_region(pair.peer[0], id);
    ASSERT_TRUE(pair.until([&] { return pair.at(1).is_reusable(id); }));
    EXPECT_TRUE(ticket.done());
    const Region again = make_region(pair.at(1), id, 1 << 20).take();
    for (int i = 0; i < 100; ++i) pair.poll();
    std::byte* const end = again.base + (1 << 20);
    EXPECT_TRUE(std::all_of(again.base, end, [](std::byte byte) { return byte == std::byte{0}; }));
    ASSERT_TRUE(pair.status(0).ok() && pair.status(1).ok())
        << "a put arrived after its memory was deregistered: " << pair.status(0).message();
  }
}

// All peers have closed the region, but the device still reads from it for a put of this process.
TEST(VerbsRegions, StayWhileThisProcessPutsFromThem) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    VerbsPair pair({.seed = seed, .queue_pairs = 4, .region_bytes = 1 << 20});
    const RegionId id = pair.region[0].id;
    pair.at(1).close_region(pair.peer[1], id);
    for (int i = 0; i < 50; ++i) pair.poll();
    Ticket ticket;
    ASSERT_EQ(pair.put(0, 1 << 20, 0, 0, &ticket), Posted::Pending);
    pair.at(0).release_region(id, Release::Keep);
    ASSERT_TRUE(pair.until([&] { return pair.at(0).is_reusable(id); }));
    EXPECT_TRUE(ticket.done());
    ASSERT_TRUE(pair.status(0).ok() && pair.status(1).ok()) << pair.status(0).message();
  }
}

TEST(VerbsRegions, ManyInTurnLeaveNothing) {
  VerbsPair pair;
  for (RegionId id = 1; id <= 60; ++id) {
    const MadeRegion region = make_region(pair.at(1), id, 4096).take();
    ASSERT_TRUE(pair.at(1).offer_region(pair.peer[1], id, kNoNote).ok());
    ASSERT_TRUE(pair.at(0).open_region(pair.peer[0], region.key, {}).ok());
    std::memset(pair.region[0].base, static_cast<int>(id), 256);
    Ticket ticket;
    ASSERT_EQ(
        pair.at(0).put(pair.peer[0], 0, {pair.region[0].base, 256, 0}, {id, 1024, 256}, &ticket),
        Posted::Pending);
    ASSERT_EQ(pair.at(0).signal(pair.peer[0], 0, {id, 64, kLineBytes}, 1, Header()), Posted::Done);
    const auto& line = *reinterpret_cast<Line*>(region.base + 64);
    ASSERT_TRUE(pair.until([&] { return line.counter.load(std::memory_order_acquire) == 1; }));
    ASSERT_EQ(region.base[1024 + 255], static_cast<std::byte>(id));
    pair.at(0).close_region(pair.peer[0], id);
    pair.at(1).release_region(id, Release::Keep);
    ASSERT_TRUE(pair.until([&] { return ticket.done(); }));
  }
  const auto all = [&] {
    const fake::Wire::Hold hold(pair.network.wire);
    return pair.network.registry.memory.size();
  };
  // Of each side: its region, the records of its peer, the buffers of its listener.
  EXPECT_TRUE(pair.until([&] { return all() == 6; }));
}

// A heap is registered part by part. Puts read from a part, and peers put to one by its short key.
TEST(VerbsRegions, PutsReadFromAPartOfOtherMemory) {
  VerbsPair pair;
  const auto memory = std::make_shared<SharedSegment>(SharedSegment::create(16384).take());
  ASSERT_TRUE(pair.at(0).register_region(9, {memory, 4096, 8192, Access::PutOnly}).ok());
  std::memset(memory->data() + 4096, 0x5A, 8192);
  Ticket ticket;
  ASSERT_EQ(pair.at(0).put(pair.peer[0], 0, {memory->data() + 5000, 256, 9},
                           {pair.region[1].id, 4096, 256}, &ticket),
            Posted::Pending);
  EXPECT_TRUE(pair.until([&] { return ticket.done(); }));
  ASSERT_EQ(pair.signal(0, 1), Posted::Done);  // a put that is done need not be seen yet
  ASSERT_TRUE(pair.until([&] { return pair.counter(1) == 1; }));
  EXPECT_EQ(pair.region[1].base[4096 + 255], std::byte{0x5A});
  const fake::Wire::Hold hold(pair.network.wire);
  for (const auto& [key, region] : pair.network.registry.memory) {
    if (region->addr != memory->data() + 4096) continue;
    EXPECT_EQ(region->length, 8192u);
    EXPECT_EQ(region->access & IBV_ACCESS_REMOTE_READ, 0u);
  }
}

TEST(VerbsRegions, APartIsPutToByItsShortKey) {
  VerbsPair pair;
  const auto memory = std::make_shared<SharedSegment>(SharedSegment::create(16384).take());
  Result<std::string> key = pair.at(1).register_region(9, {memory, 4096, 8192, Access::PutOnly});
  ASSERT_TRUE(key.ok()) << key.status().message();
  ASSERT_EQ(key.value().size(), kShortKeyBytes);
  for (int time = 0; time < 2; ++time) {
    Result<Region> open = pair.at(0).open_region(pair.peer[0], key.value(), {});
    ASSERT_TRUE(open.ok()) << open.status().message();
    EXPECT_EQ(open.value().id, 9u);
    EXPECT_EQ(open.value().bytes, 8192u);
    EXPECT_EQ(open.value().base, nullptr);
  }
  std::memset(pair.region[0].base + 512, 0x5A, 256);
  Ticket ticket;
  ASSERT_EQ(pair.at(0).put(pair.peer[0], 0, {pair.region[0].base + 512, 256, pair.region[0].id},
                           {9, 8192 - 256, 256}, &ticket),
            Posted::Pending);
  ASSERT_EQ(pair.signal(0, 1), Posted::Done);
  ASSERT_TRUE(pair.until([&] { return pair.counter(1) == 1; }));
  EXPECT_EQ(memory->data()[4096 + 8192 - 257], std::byte{0});
  EXPECT_EQ(memory->data()[4096 + 8192 - 256], std::byte{0x5A});
  EXPECT_EQ(memory->data()[4096 + 8192 - 1], std::byte{0x5A});
  EXPECT_TRUE(pair.until([&] { return ticket.done(); }));
}

TEST(VerbsRegions, ARegistrationThatFailsIsSaid) {
  VerbsPair pair;
  pair.network.refuse_registrations("fake0", ENOMEM);
  const auto region = make_region(pair.at(0), 5, 1 << 20);
  ASSERT_FALSE(region.ok());
  EXPECT_NE(region.status().message().find("1048576 bytes of memory on fake0"), std::string::npos)
      << region.status().message();
  pair.network.refuse_registrations("fake0", 0);
  EXPECT_TRUE(make_region(pair.at(0), 5, 1 << 20).ok());
}

// Signals to and fro, as collectives go, until the counters of both stand at `last`.
void exchange_signals(VerbsPair& pair, uint64_t last) {
  for (uint64_t i = pair.counter(0) + 1; i <= last; ++i) {
    ASSERT_EQ(pair.signal(0, i), Posted::Done);
    ASSERT_TRUE(pair.until([&] { return pair.counter(1) == i; }));
    ASSERT_EQ(pair.signal(1, i), Posted::Done);
    ASSERT_TRUE(pair.until([&] { return pair.counter(0) == i; }));
  }
}

TEST(VerbsRegions, TheSteadyStateRegistersAndNegotiatesNothing) {
  VerbsPair pair;
  const TransportCounters met = pair.at(0).counters();
  // The network may bring a handshake of the meeting late, and it is answered; there are few.
  uint64_t messages = 1;
  for (uint64_t last = 1'000; messages != 0 && last <= 5'000; last += 1'000) {
    const uint64_t before = pair.at(0).counters().control_messages;
    exchange_signals(pair, last);
    messages = pair.at(0).counters().control_messages - before;
  }
  EXPECT_EQ(messages, 0u);
  EXPECT_EQ(pair.at(0).counters().registrations, met.registrations);
}

}  // namespace
}  // namespace rdmacoll::verbs_regions_test
