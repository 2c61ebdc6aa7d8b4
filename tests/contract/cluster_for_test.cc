// Cluster: threads and processes, the board, and what members do.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "tests/contract/cluster.h"

namespace rdmacoll {
namespace {

constexpr int64_t kGiveUpMs = 30'000;

void drive(const Kind& kind, int rank, int world, uint64_t seed, Board& board, const Body& body,
           const OpenTransport& open) {
  const SteadyClock clock;
  auto opened = open(rank, clock);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  std::unique_ptr<Transport> transport = opened.take();
  Member member{.kind = kind,
                .rank = rank,
                .world = world,
                .seed = seed,
                .transport = *transport,
                .clock = clock,
                .board = board,
                .leave = [&] { transport.reset(); }};
  Script script = body(member);
  member.resume_at = script.handle();
  const Deadline deadline = Deadline::after_ms(clock, kGiveUpMs);
  while (true) {
    member.given_up = deadline.passed(clock);
    member.resume_at.resume();
    if (script.ended()) break;
    if (transport != nullptr) transport->poll();
    std::this_thread::yield();  // ranks outnumber cores
  }
  report(script, kind, seed, rank);
}

}  // namespace

void run_threads(const Kind& kind, int world, uint64_t seed, const Body& body,
                 const OpenTransport& open) {
  Board board;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] { drive(kind, rank, world, seed, board, body, open); });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_processes(const Kind& kind, int world, uint64_t seed, const Body& body,
                   const OpenTransport& open) {
  Board board;
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < world; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      drive(kind, rank, world, seed, board, body, open);
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

void report(const Script& script, const Kind& kind, uint64_t seed, int rank) {
  try {
    script.rethrow();
  } catch (const std::exception& error) {
    ADD_FAILURE() << kind.name << " seed " << seed << " rank " << rank << ": " << error.what();
  }
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
  co_await gather(transport.info().address);
  std::vector<int> order;
  for (int other = 0; other < world; ++other) order.push_back(other);
  // The order of one peer after the other, or, where it must not be a circle, one for all ranks.
  std::mt19937_64 random(seed * 131 + (kind.any_order ? static_cast<uint64_t>(rank) : 0));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  peers.resize(order.size());
  for (const int other : order) {
    Result<PeerId> peer = transport.connect(gathered[static_cast<size_t>(other)], deadline());
    REQUIRE_OK(peer.status());
    peers[static_cast<size_t>(other)] = peer.value();
  }
}

Result<MadeRegion> Member::make(uint64_t bytes, Access access) {
  return make_region(transport, next_region++, bytes, access);
}

Script Member::share(uint64_t bytes, Access access) {
  Result<MadeRegion> made = make(bytes, access);
  REQUIRE_OK(made.status());
  region = made.value();
  co_await gather(std::to_string(region.id));
  for (const std::string& id : gathered) region_ids.push_back(std::stoul(id));
  co_await gather(region.key);
  opened.resize(gathered.size());
  const auto open = [&](int other) {
    Result<Region> theirs = transport.open_region(peer(other), gathered[other], deadline());
    REQUIRE_OK(theirs.status());
    opened[other] = theirs.value();
  };
  // A lower rank asks a higher one before it offers its own, so both orders happen.
  for (int other = 0; other <= rank; ++other) {
    REQUIRE_OK(transport.offer_region(peer(other), region.id, kNoNote));
  }
  for (int other = rank; other < world; ++other) open(other);
  for (int other = rank + 1; other < world; ++other) {
    REQUIRE_OK(transport.offer_region(peer(other), region.id, kNoNote));
  }
  for (int other = 0; other < rank; ++other) open(other);
}

Script Member::get(int other, uint64_t offset, LocalSlice to) {
  Ticket ticket;
  co_await post_get(other, offset, to, &ticket);
  AWAIT(*this, ticket.done());
}

Script Member::post_get(int other, uint64_t offset, LocalSlice to, Ticket* ticket) {
  const RemoteSlice from{region_of(other), offset, to.bytes};
  AWAIT(*this, transport.get(peer(other), 0, from, to, ticket) != Posted::Full);
}

}  // namespace rdmacoll
