// Script: a random sequence of collectives and messages, the same on all ranks, with its expected
// results. Values are small integers, so that sums are exact whatever the algorithm.
// Floor: tests. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "csrc/engine/communicator.h"

namespace rdmacoll {

class Script {
 public:
  Script(std::mt19937_64& random, int world, int operations);

  int operations() const { return static_cast<int>(operations_.size()); }
  // Starts operation i on this rank; a rank starts them in order.
  std::vector<WorkPtr> start(int i, Communicator& communicator);
  // Empty, or what is wrong with the results of operation i on the rank.
  std::string check(int i, int rank) const;

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
    Barrier,
    Shift,  // everybody sends to a neighbour and receives from the other
    kCount
  };
  using Numbers = std::vector<int32_t>;
  // Of one rank. Blocks of the collectives with one per rank; else only [0].
  struct Memory {
    std::vector<Numbers> in, out, expected;
  };
  struct Operation {
    Kind kind;
    int root;
    std::vector<Memory> ranks;
  };

  Operation make(std::mt19937_64& random);
  void fill_contiguous(Operation& operation, std::mt19937_64& random);
  void fill_scattered(Operation& operation, std::mt19937_64& random);
  Result<WorkPtr> start_collective(Operation& operation, Communicator& communicator);

  int world_;
  std::vector<Operation> operations_;
};

}  // namespace rdmacoll
