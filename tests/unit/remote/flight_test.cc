// What the flight recorder notes of sessions: what they have moved and asked for, what hangs, and
// with whom.
#include <string>
#include <vector>

#include "csrc/engine/recorder/flight_dump.h"
#include "csrc/transport/tcp/transport.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll::flight_test {
namespace {

class FlightOfSessions : public RemoteTest {};

std::vector<FlightRecord> all_of(const FlightSnapshot& seen, FlightKind kind) {
  std::vector<FlightRecord> found;
  for (const FlightRecord& record : seen.records) {
    if (record.kind == static_cast<uint8_t>(kind)) found.push_back(record);
  }
  return found;
}

const FlightSession* session_of(const FlightSnapshot& seen, const FlightRecord& record) {
  for (const FlightSession& session : seen.sessions) {
    if (session.id == record.group) return &session;
  }
  return nullptr;
}

TEST_P(FlightOfSessions, AreNotedWithTheirBytesAndTimes) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 1) {
      p.expose({.name = "w", .bytes = 4096, .is_writable = true}, p.memory(4096, Others::Write), 0);
      p.meet();
      return;
    }
    const OpenedPtr w = p.open("w", 1);
    std::vector<std::byte> mine(4096);
    p.good(p.remote().read(w, 0, mine.data(), 4096, kSoonMs));
    p.good(p.remote().write(w, 0, mine.data(), 1000, 0, kSoonMs));
    p.good(p.remote().fence(w, kSoonMs));
    const FlightSnapshot seen = p.recorder().snapshot();
    const std::pair<FlightKind, uint64_t> wanted[] = {
        {FlightKind::Read, 4096}, {FlightKind::Write, 1000}, {FlightKind::Fence, 0}};
    for (const auto& [kind, bytes] : wanted) {
      const auto found = all_of(seen, kind);
      ASSERT_EQ(found.size(), 1u) << flight_kind_name(kind);
      EXPECT_EQ(found[0].bytes, bytes);
      EXPECT_EQ(found[0].state, FlightState::Done);
      EXPECT_LE(found[0].queued_ns, found[0].started_ns);
      EXPECT_LE(found[0].started_ns, found[0].ended_ns);
      const FlightSession* const session = session_of(seen, found[0]);
      ASSERT_NE(session, nullptr);
      EXPECT_EQ(session->with, "rank 1");
      EXPECT_EQ(session->reach, "tcp");
      EXPECT_FALSE(session->has_ended);
    }
    EXPECT_GE(all_of(seen, FlightKind::Open).size(), 1u);
    p.meet();
  });
}

// However often it asks meanwhile, that is one wait, and no room of the ring is taken for it.
TEST_P(FlightOfSessions, ANameThatNobodyExposesIsWaitedFor) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 1) {
      p.meet();
      p.expose({.name = "late", .bytes = 16}, p.memory(16, Others::OnlyRead), 0);
      p.meet();
      return;
    }
    std::thread opener([&] { p.open("late", 1); });
    FlightSnapshot seen;
    while (seen.waits.empty() || seen.waits[0].kind != FlightKind::Open) {
      std::this_thread::yield();
      seen = p.recorder().snapshot();
    }
    EXPECT_EQ(seen.waits[0].with, "rank 1");
    EXPECT_NE(flight_dump(p.recorder(), "asked")
                  .find("\"operation\": \"remote_open\", \"state\": "
                        "\"running\", \"bytes\": 0, \"with\": "
                        "\"rank 1\""),
              std::string::npos);
    p.meet();
    opener.join();
    seen = p.recorder().snapshot();
    EXPECT_TRUE(seen.waits.empty());
    EXPECT_EQ(all_of(seen, FlightKind::Open).size(), 1u);
    p.meet();
  });
}

TEST_P(FlightOfSessions, AWaitForANotificationIsInFlightUntilItComes) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      p.expose({.name = "x", .bytes = 8, .is_writable = true}, p.memory(8, Others::Write), 0);
      const WorkPtr wait = p.remote().wait_notified("x", 1, kSoonMs).take();
      while (all_of(p.recorder().snapshot(), FlightKind::WaitNotify).empty()) {
        std::this_thread::yield();
      }
      const auto waits = all_of(p.recorder().snapshot(), FlightKind::WaitNotify);
      EXPECT_EQ(waits[0].state, FlightState::Running);
      EXPECT_EQ(session_of(p.recorder().snapshot(), waits[0])->with, "");
      p.meet();
      p.good(wait);
      EXPECT_EQ(all_of(p.recorder().snapshot(), FlightKind::WaitNotify)[0].state,
                FlightState::Done);
      p.meet();
      return;
    }
    p.meet();
    const uint64_t word = 5;
    p.good(p.remote().write(p.open("x", 0), 0, &word, 8, 1, kSoonMs));
    p.meet();
  });
}

TEST_P(FlightOfSessions, WhoIsGoneIsSaid) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 1) {
      p.expose({.name = "w", .bytes = 16}, p.memory(16, Others::OnlyRead), 0);
      p.meet();
      p.leave_all();
      return;
    }
    const OpenedPtr w = p.open("w", 1);
    p.meet();
    p.meet();
    while (w->session->failure().ok()) std::this_thread::yield();
    const FlightSnapshot seen = p.recorder().snapshot();
    const FlightSession* const session = session_of(seen, all_of(seen, FlightKind::Open)[0]);
    ASSERT_NE(session, nullptr);
    EXPECT_TRUE(session->has_ended);
    EXPECT_NE(session->failure.find("rank 1 is gone"), std::string::npos) << session->failure;
  });
}

OwnedTransports tcp(const Clock& clock) {
  return only(TcpTransport::open(Config{}, clock, ThisProcess::make().take()));
}

INSTANTIATE_TEST_SUITE_P(Sockets, FlightOfSessions, testing::Values(RemoteKind{"tcp", false, tcp}),
                         name_of);

}  // namespace
}  // namespace rdmacoll::flight_test
