// Writes that are notified of, on networks that tear every write: who sees the number sees the
// data.
#include <algorithm>

#include "csrc/engine/session/read_write.h"
#include "csrc/engine/session/session_memory.h"
#include "csrc/engine/session/sessions.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll::notified_writes_sim_test {
namespace {

constexpr uint64_t kSeeds = 40;
constexpr uint64_t kWrites = 10;
constexpr uint32_t kLine = 5;
constexpr uint64_t kMostRounds = 2'000'000;  // of a world: ten times as many as it takes

// Of that rank with the other, once it is there.
SessionPtr session_of(SimWorld& world, int rank, int other) {
  auto met = world.rank(rank).context().sessions.look(
      *world.rank(rank).address_of(other), "rank " + std::to_string(other), Deadline{INT64_MAX});
  return met.ok() ? met.take() : nullptr;
}

void write_and_notify(uint64_t seed) {
  std::mt19937_64 random(seed);
  SimOptions options;
  options.world = 2;
  options.mapped = random() % 2 == 0;
  SimWorld world(seed, options, small_heaps());
  SessionPtr writers;
  SessionPtr owners;
  ASSERT_TRUE(world.run_until([&] {
    writers = session_of(world, 1, 0);
    owners = session_of(world, 0, 1);
    return writers != nullptr && owners != nullptr;
  }));
  // Two writes at a time, one behind the other, to the two parts of the memory.
  const uint64_t words[] = {1 + world.draw(500), 1 + world.draw(20)};
  const uint64_t begin[] = {0, words[0]};
  const uint64_t bytes = (words[0] + words[1]) * 8;
  Region own = world.rank(0).context().transports.create_region(bytes).value();
  Transports& transports = world.rank(0).context().transports;
  Path path;
  path.transport = owners->link().transport;
  path.peer = owners->link().peer;
  ASSERT_TRUE(transports.offer_region(path, own.id, kNoNote).ok());
  const Link& link = writers->link();
  const std::string key = transports.key_over(path, transports.region_key(own.id)).value();
  const Region theirs = link.transport->open_region(link.peer, key, Deadline{0}).value();
  const Region mine = world.rank(1).context().transports.create_region(bytes).value();
  auto* const from = reinterpret_cast<uint64_t*>(mine.base);
  const auto all_are = [&](int part, uint64_t number) {
    const auto* word = reinterpret_cast<const uint64_t*>(own.base) + begin[part];
    return std::all_of(word, word + words[part], [&](uint64_t is) { return is == number; });
  };
  for (uint64_t number = 1; number <= kWrites; ++number) {
    WorkPtr works[2];
    for (int part = 0; part < 2; ++part) {
      std::fill_n(from + begin[part], words[part], number);
      const LocalSlice slice{mine.base + begin[part] * 8, words[part] * 8, mine.id};
      auto write = std::make_unique<Write>(slice, theirs, begin[part] * 8,
                                           Write::Notification{kLine, 2 * number - 1 + part});
      works[part] = std::make_shared<Work>();
      write->work = works[part];
      write->deadline_ns = INT64_MAX;
      ASSERT_TRUE(world.rank(1).context().sessions.submit(*writers, std::move(write)).ok());
    }
    uint64_t seen = 2 * number - 2;
    for (uint64_t round = 0; seen < 2 * number; ++round) {
      ASSERT_LT(round, kMostRounds);
      const uint64_t now = owners->counter(kLine);
      ASSERT_GE(now, seen) << "the line goes back";
      seen = now;
      if (seen >= 2 * number - 1) {
        ASSERT_TRUE(all_are(0, number)) << "write " << number << " is notified of too early";
      }
      world.step();
      for (int part = 0; part < 2; ++part) {  // once it has ended its source may hold anything
        if (works[part]->done()) std::fill_n(from + begin[part], words[part], ~uint64_t{0});
      }
    }
    ASSERT_TRUE(all_are(1, number)) << "the second write " << number << " is notified of too early";
    while (!works[0]->done() || !works[1]->done()) world.step();
  }
}

TEST(NotifiedWrites, AreSeenWithTheirNumber) { for_each_seed(kSeeds, write_and_notify); }

}  // namespace
}  // namespace rdmacoll::notified_writes_sim_test
