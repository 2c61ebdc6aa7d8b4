// Cluster: runs a script on every rank of a world, over each transport that there is: shm with
// ranks as threads, shm with ranks as processes, sim without and with mapped memory.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "csrc/transport/transport.h"
#include "tests/contract/script.h"

namespace rdmacoll {

enum class Kind { ShmThreads, ShmProcesses, Sim, SimMapped };
const char* kind_name(Kind kind);
inline bool is_sim(Kind kind) { return kind == Kind::Sim || kind == Kind::SimMapped; }

// How ranks tell each other their cards and keys: memory that threads and forked processes share.
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
  static constexpr int kRounds = 8;
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
  const Kind kind;
  const int rank;
  const int world;
  const uint64_t seed;  // the same on all ranks
  Transport& transport;
  const Clock& clock;
  Board& board;
  int next_round = 0;

  std::vector<std::string> gathered{};  // of gather()
  std::vector<PeerId> peers{};          // by rank; of meet()
  Region region{};                      // mine; of share()

  // Everybody's bytes into `gathered`.
  Script gather(std::string mine);
  // Connects to all ranks, itself included.
  Script meet();
  // Makes a region, opens everybody's.
  Script share(uint64_t bytes);

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

using Body = std::function<Script(Member&)>;
// Fails the test when a script fails or does not end.
void run_cluster(Kind kind, int world, uint64_t seed, const Body& body);

}  // namespace rdmacoll
