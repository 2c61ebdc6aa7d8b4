// The choice of a transport per peer: what is tried, what is said of it, and that both sides agree.
#include "csrc/engine/connect/transports.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/process_of_fakes.h"

namespace rdmacoll::transports_test {
namespace {

TEST(Transports, TheFirstThatReachesIsTaken) {
  Process mine("a");
  Result<Path> path = mine.connect(Process("a"));
  ASSERT_TRUE(path.ok()) << path.status().message();
  EXPECT_EQ(path.value().transport, &mine.shm);
  EXPECT_EQ(path.value().peer, 7u);
  EXPECT_TRUE(path.value().same_host);
  EXPECT_EQ(path.value().reason, "same host");
  EXPECT_EQ(mine.shm.connected, std::vector<std::string>{"shm address"});
  EXPECT_TRUE(mine.verbs.connected.empty());
}

TEST(Transports, UnsupportedMeansTheNext) {
  Process mine("a");
  mine.shm.on_connect = Process::fails(StatusCode::Unsupported, "another host");
  Result<Path> path = mine.connect(Process("b"));
  ASSERT_TRUE(path.ok()) << path.status().message();
  EXPECT_EQ(path.value().transport, &mine.verbs);
  EXPECT_FALSE(path.value().same_host);
  EXPECT_EQ(path.value().reason, "on host b");
  EXPECT_EQ(mine.verbs.connected, std::vector<std::string>{"verbs address"});
}

TEST(Transports, AnyOtherErrorIsTheError) {
  Process mine("a");
  mine.shm.on_connect = Process::fails(StatusCode::PeerFailed, "it has ended");
  const Status status = mine.connect(Process("a")).status();
  EXPECT_EQ(status.code(), StatusCode::PeerFailed);
  EXPECT_EQ(status.message(), "shm: it has ended");
  EXPECT_TRUE(mine.verbs.connected.empty());
}

TEST(Transports, TheSettingIsTheReason) {
  Process mine("a", false, true, with("verbs"));
  EXPECT_EQ(mine.connect(Process("a")).value().reason, "RDMACOLL_TRANSPORT=verbs");
}

TEST(Transports, WithoutAWayEachTransportSaysWhyNot) {
  Process mine("a");
  mine.shm.on_connect = Process::fails(StatusCode::Unsupported, "another host");
  const Status status = mine.connect(Process("b", true, false)).status();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_TRUE(says(status, {"host 'b'", "shm: another host", "verbs: the other process"}))
      << status.message();
}

TEST(Transports, WhatIsRequiredMustReachOtherHosts) {
  const Config config = with("auto", "verbs");
  Process mine("a", true, true, config);
  EXPECT_EQ(mine.connect(Process("a")).value().transport, &mine.shm);
  EXPECT_EQ(mine.connect(Process("b")).value().transport, &mine.verbs);
  EXPECT_EQ(mine.shm.connected.size(), 1u) << "to another host shm is not even tried";

  Process without("a", true, false, config);
  EXPECT_TRUE(without.connect(Process("a")).ok());
  const Status status = without.connect(Process("b")).status();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_TRUE(says(status, {"RDMACOLL_REQUIRE=verbs", "host 'b'"})) << status.message();
}

// Else one that has given up for the same reason is met first, and named in its place.
TEST(Transports, WhatIsRequiredIsLookedForBeforeAnybodyIsMet) {
  const Config config = with("auto", "verbs");
  Process mine("a", true, true, config);
  EXPECT_TRUE(mine.check_required(Process("b")).ok());
  EXPECT_TRUE(mine.check_required(Process("a", true, false)).ok()) << "it is of this host";
  const Status theirs = mine.check_required(Process("b", true, false));
  EXPECT_EQ(theirs.code(), StatusCode::Unsupported);
  EXPECT_TRUE(says(theirs, {"RDMACOLL_REQUIRE=verbs", "host 'b'", "verbs: the other process"}));
  Process without("a", true, false, config);
  EXPECT_FALSE(without.check_required(Process("b")).ok());
  EXPECT_TRUE(Process("a").check_required(Process("b", true, false)).ok()) << "nothing is required";
  EXPECT_TRUE(mine.verbs.connected.empty() && mine.shm.connected.empty());
}

// The other side dials over shm, is refused, and goes on to verbs: this side cannot hear of it over
// shm, where it waits.
TEST(Transports, AWaitingSideFollowsToWhereItIsCalled) {
  Process mine("a");
  const int64_t begin_ns = mine.clock.at_ns;
  mine.shm.on_connect = [&](const std::string&, Deadline) {
    mine.clock.at_ns += 10'000'000;
    if (mine.shm.connected.size() == 3) mine.verbs.callers.insert("verbs address");
    return Status(StatusCode::Timeout, "nobody came");
  };
  Result<Path> path = mine.connect(Process("a"));
  ASSERT_TRUE(path.ok()) << path.status().message();
  EXPECT_EQ(path.value().transport, &mine.verbs);
  EXPECT_LE(mine.clock.at_ns - begin_ns, 200'000'000);
  EXPECT_NE(path.value().reason.find("same host, but shm: "), std::string::npos)
      << path.value().reason;
}

TEST(Transports, AWaitingSideThatNobodyCallsWaitsToItsDeadline) {
  Process mine("a");
  mine.verbs.callers.insert("the address of another");
  mine.shm.on_connect = [&](const std::string&, Deadline) {
    mine.clock.at_ns += 10'000'000;
    return Status(StatusCode::Timeout, "nobody came");
  };
  const int64_t begin_ns = mine.clock.at_ns;
  const Status status = mine.connect(Process("a")).status();
  EXPECT_EQ(status.code(), StatusCode::Timeout);
  EXPECT_EQ(status.message(), "shm: nobody came");
  EXPECT_EQ(mine.clock.at_ns - begin_ns, 10'010'000'000) << "and one look more";
  EXPECT_TRUE(mine.verbs.connected.empty());
}

TEST(Transports, AKnownProcessKeepsItsPath) {
  Process mine("a");
  const Process other("b");
  mine.shm.on_connect = Process::fails(StatusCode::Unsupported, "another host");
  ASSERT_TRUE(mine.connect(other).ok());
  ASSERT_TRUE(mine.connect(other).ok());
  EXPECT_EQ(mine.shm.connected.size(), 1u);
  EXPECT_EQ(mine.verbs.connected.size(), 1u);
  mine.verbs.end(7, Status(StatusCode::PeerFailed, "it left"));
  EXPECT_EQ(mine.connect(other).status().code(), StatusCode::PeerFailed);
}

TEST(Transports, OnlyThoseSomebodyWasMetOverAreInUse) {
  Process mine("a");
  EXPECT_TRUE(mine.transports.in_use().empty());
  ASSERT_TRUE(mine.connect(Process("a")).ok());
  EXPECT_EQ(mine.transports.in_use().size(), 1u);
  mine.shm.on_connect = Process::fails(StatusCode::Unsupported, "another host");
  ASSERT_TRUE(mine.connect(Process("b")).ok());
  ASSERT_TRUE(mine.connect(Process("c")).ok());
  ASSERT_EQ(mine.transports.in_use().size(), 2u);
  EXPECT_EQ(mine.transports.in_use()[1], &mine.verbs);
}

TEST(Transports, WhatComesFromOutsideIsNotTrusted) {
  Process mine("a");
  const std::string good = mine.transports.local_address();
  for (size_t cut = 1; cut < good.size(); ++cut) {
    Result<TaggedFields> parsed = parse_tagged_fields(good.substr(0, cut));
    EXPECT_TRUE(!parsed.ok() || encode(parsed.value()) == good.substr(0, cut)) << cut;
  }
  EXPECT_FALSE(parse_tagged_fields(good + good).ok()) << "a name twice";
  EXPECT_FALSE(parse_tagged_fields(std::string(3, '\xff')).ok());
  EXPECT_FALSE(parse_tagged_fields(std::string(kMaxTaggedFieldsBytes + 1, 'x')).ok());
  EXPECT_EQ(parse_tagged_fields(good).value(), parse_tagged_fields(good).value());
  EXPECT_EQ(connect_one(mine.transports, "no address", Deadline{0}, mine.clock).status().code(),
            StatusCode::InvalidArgument);
  EXPECT_EQ(connect_one(mine.transports, "", Deadline{0}, mine.clock).status().code(),
            StatusCode::Unsupported);
  const Path path{.transport = &mine.shm};
  for (const std::string& key : {std::string(), std::string("garbage"), encode({{"shm", ""}}),
                                 encode({{"shm", "?"}}), encode({{"verbs", "+key"}})}) {
    EXPECT_EQ(mine.transports.open_region(path, key, Deadline{0}).status().code(),
              StatusCode::InvalidArgument);
  }
  EXPECT_TRUE(mine.shm.opened.empty());
}

// Fuzzing found the first: the reason that a peer gives where its memory has no key.
TEST(Transports, WhatAPeerWritesIsPrintedWithoutControlCharacters) {
  const ManualClock clock;
  const Config config;
  FakeTransport shm("shm", "its address");
  Transports transports({&shm}, {"host", "name"}, config, clock);
  const Deadline deadline = Deadline::after_ms(clock, 1);
  const std::string key = encode(TaggedFields{{"shm", "-no\033[2J"}});
  const Path path{.transport = &shm, .peer = 7};
  EXPECT_EQ(transports.open_region(path, key, deadline).status().message(),
            "its memory cannot be reached by shm: no\\x1b[2J");
  const std::string address = encode(TaggedFields{{"host id", "other"}, {"host name", "h\033[2J"}});
  const Status nowhere = connect_one(transports, address, deadline, clock).status();
  EXPECT_NE(nowhere.message().find("host 'h\\x1b[2J'"), std::string::npos) << nowhere.message();
}

TEST(Transports, WhatACardSaysOfAHeapIsNotTrusted) {
  Process mine("a");
  mine.shm.share_memory();
  const auto open = [&](const std::string& field) {
    return mine.transports.open_heap({.transport = &mine.shm, .heap = field}, Deadline{0});
  };
  const std::string size(8, '\1');
  EXPECT_EQ(open("").value().size(), 0u);
  for (const std::string& field : {size.substr(1), size, size + "garbage"}) {
    EXPECT_EQ(open(field).status().code(), StatusCode::InvalidArgument);
  }
  EXPECT_TRUE(mine.shm.opened.empty());
  const std::string good = size + encode({{"shm", "+key"}});
  std::byte heap{};
  mine.shm.open_as = {1, &heap, 0x0101010101010101};
  EXPECT_TRUE(says(open(good).status(), {"another region"}));
  mine.shm.open_as.id = Heap::kRegion;
  EXPECT_EQ(open(good).value().data(), &heap);
  mine.shm.open_as.bytes -= 1;  // a peer's messages would be read from beside its heap
  EXPECT_EQ(open(good).status().code(), StatusCode::InvalidArgument);
}

TEST(Transports, AnAddressNamesTheIsland) {
  Process mine("a");
  EXPECT_EQ(Transports::island_of(mine.transports.local_address()), "") << "nothing is shared";
  mine.shm.claim_island("an island");
  EXPECT_EQ(Transports::island_of(mine.transports.local_address()), "an island");
  mine.verbs.claim_island("another");
  EXPECT_EQ(Transports::island_of(mine.transports.local_address()), "an island") << "the best";
  EXPECT_EQ(Transports::island_of(encode({{"island", "x"}})), "x");
  for (const std::string& bytes : {std::string(), std::string("no address"),
                                   encode({{"shm", "island"}}), std::string(5000, 'x')}) {
    EXPECT_EQ(Transports::island_of(bytes), "");
  }
}

TEST(Transports, TheCardSaysHowLargeAHeapIsMapped) {
  Process mine("a");
  Config config;
  config.heap_bytes = 1 << 20;
  mine.shm.share_memory();
  ASSERT_TRUE(mine.transports.adopt_heap(Heap::create(config).take()).ok());
  const auto mapped_up_to = [&](uint64_t bytes) {
    const std::string field(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    return mine.transports.heap_is_mapped_by({.transport = &mine.shm, .largest_heap = field});
  };
  EXPECT_TRUE(mapped_up_to(1 << 20));
  EXPECT_FALSE(mapped_up_to((1 << 20) - 1));
  EXPECT_TRUE(mine.transports.heap_is_mapped_by({.transport = &mine.shm})) << "it says nothing";
}

TEST(Transports, OpenTakesWhatTheSettingSays) {
  const SteadyClock clock;
  Result<std::unique_ptr<Transports>> only_shm =
      Transports::open(with("shm"), clock, nullptr, ThisProcess::make().take());
  ASSERT_TRUE(only_shm.ok()) << only_shm.status().message();
  auto self = connect_one(*only_shm.value(), only_shm.value()->local_address(), Deadline{0}, clock);
  ASSERT_TRUE(self.ok()) << self.status().message();
  EXPECT_EQ(self.value().transport->info().name, "shm");
  Config config = with("shm");
  config.host_id = "far away";
  auto elsewhere = Transports::open(config, clock, nullptr, ThisProcess::make().take());
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status().message();
  const auto island = [](auto& opened) {
    return Transports::island_of(opened.value()->local_address());
  };
  EXPECT_NE(island(only_shm), "");
  EXPECT_NE(island(only_shm), island(elsewhere));
  const Status status =
      connect_one(*only_shm.value(), elsewhere.value()->local_address(), Deadline{0}, clock)
          .status();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_TRUE(says(status, {"host 'far away'", "shm: ", "verbs: RDMACOLL_TRANSPORT=shm"}))
      << status.message();

  // With a device or without one:
  auto only_verbs = Transports::open(with("verbs"), clock, nullptr, ThisProcess::make().take());
  if (!only_verbs.ok()) {
    EXPECT_TRUE(says(only_verbs.status(), {"RDMACOLL_TRANSPORT=verbs: "}))
        << only_verbs.status().message();
    return;
  }
  self = connect_one(*only_verbs.value(), only_verbs.value()->local_address(), Deadline{0}, clock);
  ASSERT_TRUE(self.ok()) << self.status().message();
  EXPECT_EQ(self.value().transport->info().name, "verbs");
  EXPECT_EQ(island(only_verbs), "");

  EXPECT_TRUE(
      says(Transports::open(with("pigeons"), clock, nullptr, ThisProcess::make().take()).status(),
           {"RDMACOLL_TRANSPORT='pigeons'", "one of auto, shm, verbs, tcp"}));
  Config requires_shm;
  requires_shm.require = "shm";
  EXPECT_TRUE(
      says(Transports::open(requires_shm, clock, nullptr, ThisProcess::make().take()).status(),
           {"RDMACOLL_REQUIRE='shm' is not valid; use one of verbs, tcp or unset it"}));

  config.host_id = std::string(300, 'x');
  EXPECT_TRUE(says(Transports::open(config, clock, nullptr, ThisProcess::make().take()).status(),
                   {"RDMACOLL_HOST_ID", "300"}));
}

}  // namespace
}  // namespace rdmacoll::transports_test
