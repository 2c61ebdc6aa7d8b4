// The flight recorder over real groups: what it notes of collectives and of point-to-point, what it
// says of one that hangs, and what it writes when a group fails.
#include "csrc/engine/recorder/flight_recorder.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "csrc/engine/recorder/flight_dump.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::flight_recorder_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Two ranks, each with its recorder.
template <typename Body>
void run_two(const Config& config, Body&& body) {
  ThreadBootstrap bootstrap(2);
  std::barrier done(2);
  const auto run = [&](int rank) {
    auto endpoint = Endpoint::open(config);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
    auto face = bootstrap.face(rank);
    auto made = endpoint.value()->create_communicator(rank, 2, face, kTestTimeoutMs, "",
                                                      {.name = "pair", .ranks = {4, 6}});
    ASSERT_TRUE(made.ok()) << made.status().message();
    body(*made.value(), *endpoint.value()->flight_recorder());
    done.arrive_and_wait();
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
}

TEST(FlightRecorder, NotesCollectivesAndPointToPoint) {
  run_two(config_of_environment(), [](Communicator& c, FlightRecorder& recorder) {
    std::vector<float> data(10'000, 1.0f);
    finish(c, c.all_reduce(data.data(), data.data(), 10'000, DType::Float32, ReduceOp::Sum));
    finish(c, c.broadcast(data.data(), 40'000, 1));
    if (c.rank() == 0) {
      finish(c, c.send({data.data(), 40'000}, 1, 5));
    } else {
      finish(c, c.recv({data.data(), 40'000}, kAnySource, 5));
    }
    const FlightSnapshot seen = recorder.snapshot();
    ASSERT_EQ(seen.groups.size(), 1u);
    ASSERT_EQ(seen.groups[0].name.ranks, (std::vector<uint64_t>{4, 6}));
    ASSERT_EQ(seen.records.size(), 3u);
    for (const FlightRecord& record : seen.records) {
      ASSERT_EQ(record.state, FlightState::Done);
      ASSERT_EQ(record.bytes, 40'000u);
      ASSERT_LE(record.queued_ns, record.started_ns);
      ASSERT_LE(record.started_ns, record.ended_ns);
    }
    ASSERT_EQ(seen.records[0].kind, static_cast<uint8_t>(Collective::AllReduce));
    ASSERT_EQ(seen.records[0].dtype, static_cast<uint8_t>(DType::Float32));
    ASSERT_EQ(seen.records[1].sequence, 2u);
    ASSERT_EQ(seen.records[1].peer, 1);
    ASSERT_EQ(seen.records[2].kind, c.rank() == 0 ? kFlightSend : kFlightRecv);
    ASSERT_EQ(seen.records[2].peer, 1 - c.rank());  // also of a receive from anybody
    ASSERT_EQ(seen.records[2].tag, 5);
  });
}

TEST(FlightRecorder, SaysWhatIsInFlight) {
  run_two(config_of_environment(), [](Communicator& c, FlightRecorder& recorder) {
    int32_t value = 0;
    if (c.rank() == 0) {
      auto hangs = c.barrier();
      auto behind = c.broadcast(&value, 4, 0);
      while (recorder.snapshot().records.size() < 2 ||
             recorder.snapshot().records[0].state != FlightState::Running) {
        std::this_thread::yield();
      }
      const std::string text = flight_dump(recorder, "asked");
      EXPECT_TRUE(contains(text, "\"operation\": \"barrier\", \"state\": \"running\"")) << text;
      EXPECT_TRUE(contains(text, "\"operation\": \"broadcast\", \"state\": \"queued\"")) << text;
      EXPECT_TRUE(contains(text, "\"ended\": []")) << text;
      EXPECT_TRUE(contains(text, "\"name\": \"pair\", \"rank\": 0, \"ranks\": [4, 6]")) << text;
      finish(c, c.send({&value, 4}, 1, 0));
      finish(c, std::move(hangs));
      finish(c, std::move(behind));
    } else {
      finish(c, c.recv({&value, 4}, 0, 0));
      finish(c, c.barrier());
      finish(c, c.broadcast(&value, 4, 0));
    }
  });
}

TEST(FlightRecorder, WritesADumpWhenAGroupFails) {
  char folder[] = "/tmp/rdmacoll-dumps-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  Config config = config_of_environment();
  config.dump_dir = folder + std::string("/new");
  config.place.rank = 3;
  config.log_level = LogLevel::Error;
  run_two(config, [](Communicator& c, FlightRecorder&) {
    if (c.rank() == 0) return;
    c.set_timeout_ms(50);
    const Status status = c.wait(*c.barrier().value(), -1, {});
    ASSERT_EQ(status.code(), StatusCode::Timeout);
  });
  const std::filesystem::path path =
      config.dump_dir + "/rdmacoll-rank3-pid" + std::to_string(::getpid()) + "-error1.json";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_TRUE(contains(text.str(), "\"reason\": \"Timed out after")) << text.str();
  EXPECT_TRUE(contains(text.str(), "\"in_flight\": [{\"group\": 1, \"sequence\": 1")) << text.str();
  std::filesystem::remove_all(folder);
}

TEST(FlightRecorder, IsLeftOutWhereTheUserWantsNone) {
  Config config = config_of_environment();
  config.flight_records = 0;
  WorldOfThreads(2, config).run([](Communicator& c) { finish(c, c.barrier()); });
  auto endpoint = Endpoint::open(config);
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint.value()->flight_recorder(), nullptr);
}

TEST(FlightRecorder, ForgetsGroupsThatNothingTellsOf) {
  Config config = config_of_environment();
  config.flight_records = 1;
  const SteadyClock clock;
  auto recorder = std::make_shared<FlightRecorder>(config);
  for (int i = 0; i < 5; ++i) {
    FlightLog log(clock, recorder, {.name = {.name = std::to_string(i)}, .size = 1});
    log.end_point_to_point(log.point_to_point(kFlightSend, 1, 0, 0, 1), true);
    log.left();
  }
  // The last, and the one before it, whose operation was there when the last came.
  ASSERT_EQ(recorder->snapshot().groups.size(), 2u);
  EXPECT_EQ(recorder->snapshot().groups[1].name.name, "4");
}

}  // namespace
}  // namespace rdmacoll::flight_recorder_test
