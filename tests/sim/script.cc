// Script. Floor: tests. Thread: one.
#include "tests/sim/script.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <span>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

using Numbers = HeapVector<int32_t>;

constexpr int32_t kOverwritten = -7;
constexpr size_t kPieces = 12;             // of a Shuffle; more than there are eager slots
constexpr int32_t kShuffleTags = 1 << 20;  // a Shift has its own

Numbers random_numbers(std::mt19937_64& random, size_t count) {
  Numbers numbers(count);
  for (int32_t& number : numbers) number = static_cast<int32_t>(random() % 1000);
  return numbers;
}

std::vector<int32_t> plain(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

void overwrite(std::vector<Numbers>& blocks) {
  for (Numbers& numbers : blocks) std::fill(numbers.begin(), numbers.end(), kOverwritten);
}

void add(std::vector<int32_t>& sum, const Numbers& numbers) {
  sum.resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) sum[i] += numbers[i];
}

ConstBuffer source(const Numbers& numbers) {
  return {numbers.data(), numbers.size() * sizeof(int32_t)};
}
MutableBuffer target(Numbers& numbers) {
  return {numbers.data(), numbers.size() * sizeof(int32_t)};
}
std::vector<ConstBuffer> sources(const std::vector<Numbers>& blocks) {
  std::vector<ConstBuffer> all;
  for (const auto& block : blocks) all.push_back(source(block));
  return all;
}
std::vector<MutableBuffer> targets(std::vector<Numbers>& blocks) {
  std::vector<MutableBuffer> all;
  for (auto& block : blocks) all.push_back(target(block));
  return all;
}

// The rank that is so many places away; 0: this rank.
int right_of(const Communicator& c, int distance) { return (c.rank() + distance) % c.size(); }
int left_of(const Communicator& c, int distance) {
  return (c.rank() + c.size() - distance) % c.size();
}

// The only thread there is calls back.
void when_done(std::span<const WorkPtr> works, const std::function<void()>& then) {
  auto left = std::make_shared<size_t>(works.size());
  for (const WorkPtr& work : works) {
    work->on_done([left, then](const Status&) {
      if (--*left == 0) then();
    });
  }
}

}  // namespace

Script::Script(std::mt19937_64& random, std::vector<Heap*> heaps, int operations, size_t scale)
    : world_(static_cast<int>(heaps.size())), scale_(scale), heaps_(std::move(heaps)) {
  for (int i = 0; i < operations; ++i) operations_.push_back(make(random));
  heap_of_this_rank = nullptr;
}

// For what is made next: buffers of this rank.
void Script::choose_heap(std::mt19937_64& random, size_t rank) const {
  heap_of_this_rank = random() % 2 == 0 ? heaps_[rank] : nullptr;
}

// Mostly small, now and then many tiles; of many ranks always small.
size_t Script::random_count(std::mt19937_64& random) const {
  constexpr size_t kMost[] = {4, 40, 300, 3000};
  if (world_ >= kManyRanks) return random() % kMost[1];
  const size_t most = kMost[random() % std::size(kMost)];
  return random() % (most * scale_);
}

Script::Operation Script::make(std::mt19937_64& random) {
  Operation operation;
  operation.kind = static_cast<Kind>(random() % static_cast<uint64_t>(Kind::kCount));
  operation.root = static_cast<int>(random() % static_cast<uint64_t>(world_));
  operation.ranks.resize(static_cast<size_t>(world_));
  switch (operation.kind) {
    case Kind::AllReduce:
    case Kind::AllReduceInPlace:
    case Kind::Broadcast:
    case Kind::Reduce:
    case Kind::Shift:
    case Kind::Shuffle:
      fill_contiguous(operation, random);
      break;
    case Kind::AllGather:
    case Kind::ReduceScatter:
    case Kind::AllToAll:
    case Kind::Gather:
    case Kind::Scatter:
    case Kind::AllToAllOfEquals:
    case Kind::GatherOfEquals:
    case Kind::ScatterOfEquals:
      fill_scattered(operation, random);
      break;
    case Kind::Barrier:
    case Kind::kCount:
      break;
  }
  return operation;
}

void Script::fill_contiguous(Operation& operation, std::mt19937_64& random) {
  const size_t count = random_count(random);
  const auto root = static_cast<size_t>(operation.root);
  std::vector<int32_t> sum;
  for (size_t r = 0; r < operation.ranks.size(); ++r) {
    Memory& memory = operation.ranks[r];
    choose_heap(random, r);
    memory.in.push_back(random_numbers(random, count));
    choose_heap(random, r);
    memory.out.emplace_back(count, -1);
    add(sum, memory.in[0]);
  }
  for (size_t r = 0; r < operation.ranks.size(); ++r) {
    Memory& memory = operation.ranks[r];
    const size_t left = (r + operation.ranks.size() - root) % operation.ranks.size();
    switch (operation.kind) {
      case Kind::AllReduceInPlace:
        memory.out[0] = memory.in[0];
        memory.expected = {sum};
        break;
      case Kind::Broadcast:
        if (r == root) memory.out[0] = memory.in[0];
        memory.expected = {plain(operation.ranks[root].in[0])};
        break;
      case Kind::Reduce:
        memory.expected = {r == root ? sum : plain(memory.out[0])};
        break;
      case Kind::Shift:
      case Kind::Shuffle:
        memory.expected = {plain(operation.ranks[left].in[0])};
        break;
      default:
        memory.expected = {sum};
    }
  }
}

// Whatever the sizes of its blocks.
Script::Kind Script::plain_kind(Kind kind) {
  if (kind == Kind::AllToAllOfEquals) return Kind::AllToAll;
  if (kind == Kind::GatherOfEquals) return Kind::Gather;
  return kind == Kind::ScatterOfEquals ? Kind::Scatter : kind;
}

void Script::fill_scattered(Operation& operation, std::mt19937_64& random) {
  const auto world = static_cast<size_t>(world_);
  const auto root = static_cast<size_t>(operation.root);
  // count[a][b]: what a has for b.
  std::vector<std::vector<size_t>> count(world, std::vector<size_t>(world));
  for (auto& row : count) {
    for (size_t& c : row) c = random_count(random) / 4;
  }
  const Kind kind = plain_kind(operation.kind);
  if (kind != operation.kind) {
    for (auto& row : count) std::fill(row.begin(), row.end(), count[0][0]);
  }
  for (size_t r = 0; r < world; ++r) {
    Memory& memory = operation.ranks[r];
    choose_heap(random, r);
    for (size_t b = 0; b < world; ++b) {
      const bool rooted_in = kind == Kind::Scatter && r == root;
      const bool rooted_out = kind == Kind::Gather && r == root;
      if (kind == Kind::AllToAll) memory.in.push_back(random_numbers(random, count[r][b]));
      if (kind == Kind::ReduceScatter || rooted_in) {
        memory.in.push_back(random_numbers(random, count[0][b]));
      }
      if (kind == Kind::AllToAll) memory.out.emplace_back(count[b][r], -1);
      if (kind == Kind::AllGather || rooted_out) memory.out.emplace_back(count[0][b], -1);
    }
    if (kind == Kind::AllGather || kind == Kind::Gather) {
      memory.in.push_back(random_numbers(random, count[0][r]));
    }
    if (kind == Kind::ReduceScatter || kind == Kind::Scatter) {
      memory.out.emplace_back(count[0][r], -1);
    }
  }
  for (size_t r = 0; r < world; ++r) {
    Memory& memory = operation.ranks[r];
    memory.expected.resize(memory.out.size());
    for (size_t b = 0; b < world; ++b) {
      const Memory& other = operation.ranks[b];
      if (kind == Kind::AllToAll) memory.expected[b] = plain(other.in[r]);
      if (kind == Kind::AllGather || (kind == Kind::Gather && r == root)) {
        memory.expected[b] = plain(other.in[0]);
      }
      if (kind == Kind::ReduceScatter) add(memory.expected[0], other.in[r]);
    }
    if (kind == Kind::Scatter) memory.expected[0] = plain(operation.ranks[root].in[r]);
  }
}

Script::Memory& Script::memory_of(int i, int rank) {
  return operations_[static_cast<size_t>(i)].ranks[static_cast<size_t>(rank)];
}

void Script::keep_results(Memory& memory) {
  for (const Numbers& numbers : memory.out) memory.result.push_back(plain(numbers));
  overwrite(memory.out);
  memory.out_given_back = true;
}

void Script::drop_inputs(Memory& memory) {
  overwrite(memory.in);
  memory.in_given_back = true;
}

std::vector<WorkPtr> Script::start(int i, Communicator& c) {
  Memory& memory = memory_of(i, c.rank());
  std::vector<WorkPtr> works = start_alone(i, c);
  // What moves to another rank has its recvs first, and as many sends, which have no results.
  const size_t half = (works.size() + 1) / 2;
  const std::span<const WorkPtr> all(works);
  when_done(all.first(half), [&memory] { keep_results(memory); });
  when_done(all.last(half), [&memory] { drop_inputs(memory); });
  return works;
}

void Script::end(int i, int rank) {
  keep_results(memory_of(i, rank));
  drop_inputs(memory_of(i, rank));
}

std::vector<WorkPtr> Script::start_alone(int i, Communicator& c) {
  Operation& operation = operations_[static_cast<size_t>(i)];
  if (operation.kind == Kind::Shift || operation.kind == Kind::Shuffle) {
    return operation.kind == Kind::Shift ? start_shift(i, c) : start_shuffle(i, c);
  }
  auto started = start_collective(operation, c);
  if (!started.ok()) return {};
  return {started.take()};
}

// The recv, then the send.
std::vector<WorkPtr> Script::start_shift(int i, Communicator& c) {
  Memory& memory = memory_of(i, c.rank());
  const int distance = operations_[static_cast<size_t>(i)].root;
  const int from = i % 3 == 0 ? kAnySource : left_of(c, distance);
  auto received = c.recv(target(memory.out[0]), from, i);
  if (!received.ok()) return {};
  auto sent = c.send(source(memory.in[0]), right_of(c, distance), i);
  if (!sent.ok()) return {received.take()};
  return {received.take(), sent.take()};
}

// The sends, then the recvs, in another order.
std::vector<WorkPtr> Script::start_shuffle(int i, Communicator& c) {
  Memory& memory = memory_of(i, c.rank());
  const int distance = operations_[static_cast<size_t>(i)].root;
  const size_t count = memory.in[0].size();
  const auto piece = [count](size_t j) { return j * count / kPieces; };
  const auto bytes = [&](size_t j) { return (piece(j + 1) - piece(j)) * sizeof(int32_t); };
  const auto tag = [i](size_t j) {
    return kShuffleTags + static_cast<int32_t>(static_cast<size_t>(i) * kPieces + j);
  };
  std::vector<WorkPtr> sends, works;
  for (size_t j = 0; j < kPieces; ++j) {
    auto sent = c.send({memory.in[0].data() + piece(j), bytes(j)}, right_of(c, distance), tag(j));
    if (sent.ok()) sends.push_back(sent.take());
  }
  for (size_t k = 0; k < kPieces; ++k) {
    const size_t j = (5 * k + static_cast<size_t>(i)) % kPieces;  // kPieces is no multiple of 5
    auto received =
        c.recv({memory.out[0].data() + piece(j), bytes(j)}, left_of(c, distance), tag(j));
    if (received.ok()) works.push_back(received.take());
  }
  works.insert(works.end(), sends.begin(), sends.end());
  return works;
}

Result<WorkPtr> Script::start_collective(Operation& operation, Communicator& c) {
  Memory& memory = operation.ranks[static_cast<size_t>(c.rank())];
  const int root = operation.root;
  const bool at_root = c.rank() == root;
  const Kind kind = plain_kind(operation.kind);
  const CallOptions options{.equal_blocks = kind != operation.kind};
  switch (kind) {
    case Kind::AllReduce:
      return c.all_reduce(memory.in[0].data(), memory.out[0].data(), memory.in[0].size(),
                          DType::Int32, ReduceOp::Sum);
    case Kind::AllReduceInPlace:
      return c.all_reduce(memory.out[0].data(), memory.out[0].data(), memory.out[0].size(),
                          DType::Int32, ReduceOp::Sum);
    case Kind::Broadcast:
      return c.broadcast(memory.out[0].data(), target(memory.out[0]).bytes, root);
    case Kind::Reduce:
      return c.reduce(memory.in[0].data(), memory.out[0].data(), memory.in[0].size(), DType::Int32,
                      ReduceOp::Sum, root);
    case Kind::AllGather:
      return c.all_gather(source(memory.in[0]), targets(memory.out));
    case Kind::ReduceScatter:
      return c.reduce_scatter(sources(memory.in), target(memory.out[0]), DType::Int32,
                              ReduceOp::Sum);
    case Kind::AllToAll:
      return c.all_to_all(sources(memory.in), targets(memory.out), options);
    case Kind::Gather:
      return c.gather(source(memory.in[0]),
                      at_root ? targets(memory.out) : std::vector<MutableBuffer>{}, root, options);
    case Kind::Scatter:
      return c.scatter(at_root ? sources(memory.in) : std::vector<ConstBuffer>{},
                       target(memory.out[0]), root, options);
    case Kind::AllToAllOfEquals:
    case Kind::GatherOfEquals:
    case Kind::ScatterOfEquals:
    case Kind::Barrier:
    case Kind::Shift:
    case Kind::Shuffle:
    case Kind::kCount:
      break;
  }
  return c.barrier();
}

std::string Script::check(int i, int rank) const {
  const Operation& operation = operations_[static_cast<size_t>(i)];
  const Memory& memory = operation.ranks[static_cast<size_t>(rank)];
  if (memory.result.size() != memory.expected.size()) {
    return "operation " + std::to_string(i) + " has no results on rank " + std::to_string(rank);
  }
  for (size_t b = 0; b < memory.expected.size(); ++b) {
    for (size_t k = 0; k < memory.expected[b].size(); ++k) {
      if (memory.result[b][k] == memory.expected[b][k]) continue;
      return "operation " + std::to_string(i) + " of kind " +
             std::to_string(static_cast<int>(operation.kind)) + " on rank " + std::to_string(rank) +
             ": block " + std::to_string(b) + " element " + std::to_string(k) + " is " +
             std::to_string(memory.result[b][k]) + ", not " + std::to_string(memory.expected[b][k]);
    }
  }
  return "";
}

std::string Script::check_given_back(int i, int rank) const {
  const Memory& memory = operations_[static_cast<size_t>(i)].ranks[static_cast<size_t>(rank)];
  const auto written = [](const std::vector<Numbers>& blocks) {
    return std::any_of(blocks.begin(), blocks.end(), [](const Numbers& numbers) {
      return std::any_of(numbers.begin(), numbers.end(),
                         [](int32_t number) { return number != kOverwritten; });
    });
  };
  const bool wrong = (memory.out_given_back && written(memory.out)) ||
                     (memory.in_given_back && written(memory.in));
  if (!wrong) return "";
  return "buffers of operation " + std::to_string(i) + " were written on rank " +
         std::to_string(rank) + " after its end";
}

}  // namespace rdmacoll
