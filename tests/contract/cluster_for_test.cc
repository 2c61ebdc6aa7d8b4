// Cluster: threads, processes, or turns in one thread.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "csrc/transport/shm/shm_transport.h"
#include "csrc/transport/sim/sim_network.h"
#include "tests/contract/cluster.h"

namespace rdmacoll {
namespace {

constexpr int64_t kGiveUpMs = 30'000;
// Turns in which nothing is in flight in a simulation until its ranks are taken for stuck.
constexpr int kIdleTurns = 1000;

void drive_shm(Kind kind, int rank, int world, uint64_t seed, Board& board, const Body& body) {
  const SteadyClock clock;
  auto opened = ShmTransport::open(Config{}, clock);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  Transport& transport = *opened.value();
  Member member{.kind = kind,
                .rank = rank,
                .world = world,
                .seed = seed,
                .transport = transport,
                .clock = clock,
                .board = board};
  Script script = body(member);
  member.resume_at = script.handle();
  const Deadline deadline = Deadline::after_ms(clock, kGiveUpMs);
  while (!script.ended()) {
    member.given_up = deadline.passed(clock);
    member.resume_at.resume();
    transport.poll();
    std::this_thread::yield();  // ranks outnumber cores
  }
  try {
    script.rethrow();
  } catch (const std::exception& error) {
    ADD_FAILURE() << kind_name(kind) << " rank " << rank << ": " << error.what();
  }
}

void run_threads(Kind kind, int world, uint64_t seed, const Body& body) {
  Board board;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] { drive_shm(kind, rank, world, seed, board, body); });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_processes(Kind kind, int world, uint64_t seed, const Body& body) {
  Board board;
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < world; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      drive_shm(kind, rank, world, seed, board, body);
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    ASSERT_EQ(::waitpid(children[rank], &status, 0), children[rank]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the process of rank " << rank;
  }
}

void run_sim(Kind kind, int world, uint64_t seed, const Body& body) {
  SimOptions options;
  options.world = world;
  options.mapped = kind == Kind::SimMapped;
  SimNetwork network(seed, options);
  Board board;
  std::vector<std::unique_ptr<Member>> members;
  std::vector<Script> scripts;
  for (int rank = 0; rank < world; ++rank) {
    members.emplace_back(new Member{.kind = kind,
                                    .rank = rank,
                                    .world = world,
                                    .seed = seed,
                                    .transport = network.transport(rank),
                                    .clock = network.clock(),
                                    .board = board});
    scripts.push_back(body(*members.back()));
    members.back()->resume_at = scripts.back().handle();
  }
  for (int idle = 0;;) {
    bool all_ended = true;
    for (size_t rank = 0; rank < scripts.size(); ++rank) {
      if (scripts[rank].ended()) continue;
      all_ended = false;
      members[rank]->given_up = idle > kIdleTurns;
      members[rank]->resume_at.resume();
    }
    if (all_ended) break;
    idle = network.step() ? 0 : idle + 1;
  }
  for (size_t rank = 0; rank < scripts.size(); ++rank) {
    try {
      scripts[rank].rethrow();
    } catch (const std::exception& error) {
      ADD_FAILURE() << kind_name(kind) << " seed " << seed << " rank " << rank << ": "
                    << error.what();
    }
  }
}

}  // namespace

const char* kind_name(Kind kind) {
  static constexpr const char* kNames[] = {"ShmThreads", "ShmProcesses", "Sim", "SimMapped"};
  return kNames[static_cast<int>(kind)];
}

Board::Board()
    : cells_(
          static_cast<Cell*>(::mmap(nullptr, sizeof(Cell) * kRounds * kRanks,
                                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
  RDMACOLL_CHECK(cells_ != MAP_FAILED);
}

Board::~Board() { ::munmap(cells_, sizeof(Cell) * kRounds * kRanks); }

Board::Cell& Board::cell(int round, int rank) const {
  RDMACOLL_CHECK(round < kRounds && rank < kRanks);
  return cells_[round * kRanks + rank];
}

void Board::publish(int round, int rank, const std::string& bytes) {
  Cell& mine = cell(round, rank);
  RDMACOLL_CHECK(bytes.size() <= sizeof mine.bytes);
  std::memcpy(mine.bytes, bytes.data(), bytes.size());
  mine.size = static_cast<uint32_t>(bytes.size());
  mine.full.store(true, std::memory_order_release);
}

bool Board::published(int round, int rank) const {
  return cell(round, rank).full.load(std::memory_order_acquire);
}

std::string Board::read(int round, int rank) const {
  const Cell& theirs = cell(round, rank);
  return std::string(theirs.bytes, theirs.size);
}

Script Member::gather(std::string mine) {
  const int round = next_round++;
  board.publish(round, rank, mine);
  gathered.clear();
  for (int other = 0; other < world; ++other) {
    AWAIT(*this, board.published(round, other));
    gathered.push_back(board.read(round, other));
  }
}

Script Member::meet() {
  co_await gather(transport.local_card());
  std::vector<int> order;
  for (int other = 0; other < world; ++other) order.push_back(other);
  std::mt19937_64 random(seed * 131 + static_cast<uint64_t>(rank));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  peers.resize(order.size());
  for (const int other : order) {
    Result<PeerId> peer = transport.connect(gathered[static_cast<size_t>(other)], deadline());
    REQUIRE_OK(peer.status());
    peers[static_cast<size_t>(other)] = peer.value();
  }
}

Script Member::share(uint64_t bytes) {
  Result<Region> made = transport.create_region(bytes);
  REQUIRE_OK(made.status());
  region = made.value();
  co_await gather(std::to_string(region.id));
  for (const std::string& id : gathered) region_ids.push_back(std::stoul(id));
  co_await gather(transport.region_key(region.id));
  // A lower rank asks a higher one before it offers its own, so both orders happen.
  for (int other = 0; other <= rank; ++other) {
    REQUIRE_OK(transport.offer_region(peer(other), region.id));
  }
  for (int other = rank; other < world; ++other) {
    REQUIRE_OK(transport.open_region(peer(other), gathered[other], deadline()));
  }
  for (int other = rank + 1; other < world; ++other) {
    REQUIRE_OK(transport.offer_region(peer(other), region.id));
  }
  for (int other = 0; other < rank; ++other) {
    REQUIRE_OK(transport.open_region(peer(other), gathered[other], deadline()));
  }
}

void run_cluster(Kind kind, int world, uint64_t seed, const Body& body) {
  if (kind == Kind::ShmThreads) return run_threads(kind, world, seed, body);
  if (kind == Kind::ShmProcesses) return run_processes(kind, world, seed, body);
  run_sim(kind, world, seed, body);
}

}  // namespace rdmacoll
