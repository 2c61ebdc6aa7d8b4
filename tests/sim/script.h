// Script: a random sequence of collectives and messages, the same on all ranks from the same random
// numbers, with its expected results. Values are small integers, so that sums are exact whatever
// the algorithm. Some buffers lie in the ranks' heaps. As users do, a rank overwrites all of them
// once its work is done: the results are taken out before, and nobody may need the rest any more.
// Floor: tests. Thread: one; results are kept by whoever ends a work, or by end().
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "csrc/engine/communicator.h"
#include "tests/unit/engine/in_heap.h"

namespace rdmacoll {

// From here on buffers are small: what grows with the world is enough.
inline constexpr int kManyRanks = 100;

class Script {
 public:
  // heaps: by rank; nullptr where there is none. They outlive the script. scale: how many times as
  // large as usual.
  Script(std::mt19937_64& random, std::vector<Heap*> heaps, int operations, size_t scale = 1);

  int operations() const { return static_cast<int>(operations_.size()); }
  // Starts operation i on this rank; a rank starts them in order. Nothing is started once the group
  // has failed.
  std::vector<WorkPtr> start(int i, Communicator& communicator);
  // The same for a rank that waits for the works itself, and calls end() after it.
  std::vector<WorkPtr> start_alone(int i, Communicator& communicator);
  void end(int i, int rank);
  // Empty, or what is wrong with the results of operation i on the rank.
  std::string check(int i, int rank) const;
  // Empty, or what was written into buffers of operation i after its end on the rank.
  std::string check_given_back(int i, int rank) const;

 private:
  enum class Kind {
    AllReduce,
    AllReduceInPlace,
    Broadcast,
    Reduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Gather,
    Scatter,
    AllToAllOfEquals,  // these three say that all blocks are of one size
    GatherOfEquals,
    ScatterOfEquals,
    Barrier,
    Shift,    // each sends to the rank `root` places further, maybe itself, and receives likewise
    Shuffle,  // the same in pieces, which are received in another order than they are sent
    kCount
  };
  using Numbers = HeapVector<int32_t>;
  // Of one rank. Blocks of the collectives with one per rank; else only [0].
  struct Memory {
    std::vector<Numbers> in, out;
    std::vector<std::vector<int32_t>> expected, result;
    bool in_given_back = false, out_given_back = false;
  };
  struct Operation {
    Kind kind;
    int root;
    std::vector<Memory> ranks;
  };

  Operation make(std::mt19937_64& random);
  size_t random_count(std::mt19937_64& random) const;
  Memory& memory_of(int i, int rank);
  void fill_contiguous(Operation& operation, std::mt19937_64& random);
  void fill_scattered(Operation& operation, std::mt19937_64& random);
  static Kind plain_kind(Kind kind);
  void choose_heap(std::mt19937_64& random, size_t rank) const;
  std::vector<WorkPtr> start_shift(int i, Communicator& communicator);
  std::vector<WorkPtr> start_shuffle(int i, Communicator& communicator);
  Result<WorkPtr> start_collective(Operation& operation, Communicator& communicator);
  static void keep_results(Memory& memory);
  static void drop_inputs(Memory& memory);

  int world_;
  size_t scale_;
  std::vector<Heap*> heaps_;
  std::vector<Operation> operations_;
};

}  // namespace rdmacoll
