// Cluster: runs a script on every rank of a world over a transport, with ranks as threads, as
// processes, or by turns in one thread.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "csrc/transport/transport.h"
#include "tests/contract/make_region.h"
#include "tests/contract/script.h"

namespace rdmacoll {

struct Member;
using Body = std::function<Script(Member&)>;

// What becomes of a rank that puts into memory of another one that is for gets alone.
enum class Trespasser : uint8_t {
  IsLost,   // to the owner, as the owner is to it
  Dies,     // at once
  IsOwner,  // nothing: ranks are of one process, which may write what it owns
};

// A transport, and what ranks are.
struct Kind {
  const char* name;
  // Fails the test when a script fails or does not end.
  void (*run)(const Kind& kind, int world, uint64_t seed, const Body& body);
  bool maps = false;       // the memory of peers is mapped
  bool any_order = false;  // connect() answers others while it waits for one
  bool is_simulated = false;
  uint64_t seeds = 1;       // how many are worth running: a real machine explores by itself
  uint64_t messages = 800;  // of a stream, divided by the world
  Trespasser trespasser = Trespasser::IsLost;
};

// How ranks tell each other their addresses and keys: memory that threads and forked processes
// share.
class Board {
 public:
  static constexpr int kRanks = 8;
  Board();
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  void publish(int round, int rank, const std::string& bytes);
  bool published(int round, int rank) const;
  std::string read(int round, int rank) const;

 private:
  static constexpr int kRounds = 16;
  struct Cell {
    std::atomic<bool> full;
    uint32_t size;
    char bytes[1024];
  };
  Cell& cell(int round, int rank) const;
  Cell* cells_;
};

// What a script has in its hands.
struct Member {
  const Kind& kind;
  const int rank;
  const int world;
  const uint64_t seed;  // the same on all ranks
  Transport& transport;
  const Clock& clock;
  Board& board;
  // Ends the transport, as a rank does that leaves. Nothing else can be done after it.
  std::function<void()> leave;
  int next_round = 0;
  RegionId next_region = 0;

  std::vector<std::string> gathered{};  // of gather()
  std::vector<PeerId> peers{};          // by rank; of meet()
  MadeRegion region{};                  // mine; of share()
  std::vector<Region> opened{};         // everybody's, as they lie here; of share()

  // Everybody's bytes into `gathered`.
  Script gather(std::string mine);
  // Connects to all ranks, itself included.
  Script meet();
  // Registers memory under the next id.
  Result<MadeRegion> make(uint64_t bytes, Access access = Access::Full);
  // Makes a region, opens everybody's.
  Script share(uint64_t bytes, Access access = Access::Full);
  // Gets bytes of a rank's region, and waits until the ticket is done.
  Script get(int other, uint64_t offset, LocalSlice to);
  // The same, but posts alone.
  Script post_get(int other, uint64_t offset, LocalSlice to, Ticket* ticket);

  Line& line(uint64_t offset) const { return *reinterpret_cast<Line*>(region.base + offset); }
  RegionId region_of(int other) const { return region_ids[static_cast<size_t>(other)]; }
  PeerId peer(int other) const { return peers[static_cast<size_t>(other)]; }
  std::vector<RegionId> region_ids{};

  Deadline deadline() const { return Deadline::after_ms(clock, 20'000); }

  // Lets the others run, and the transport.
  struct Turn {
    Member& member;
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> here) { member.resume_at = here; }
    void await_resume() {
      if (member.given_up) throw std::runtime_error("waited too long");
    }
  };
  Turn turn() { return Turn{*this}; }
  std::coroutine_handle<> resume_at{};
  bool given_up = false;
};

#define AWAIT(member, condition) \
  while (!(condition)) co_await (member).turn()

// A failure that a script cannot go on after.
#define REQUIRE_OK(status)                                        \
  if (const ::rdmacoll::Status status_ = (status); !status_.ok()) \
  throw std::runtime_error(std::string(#status) + ": " + status_.message())

// For kinds whose ranks are threads (processes) of this machine.
using OpenTransport =
    std::function<Result<std::unique_ptr<Transport>>(int rank, const Clock& clock)>;
void run_threads(const Kind& kind, int world, uint64_t seed, const Body& body,
                 const OpenTransport& open);
void run_processes(const Kind& kind, int world, uint64_t seed, const Body& body,
                   const OpenTransport& open);
// Says so when a script failed.
void report(const Script& script, const Kind& kind, uint64_t seed, int rank);

}  // namespace rdmacoll
