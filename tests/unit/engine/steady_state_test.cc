// The steady state allocates nothing: the threads of ranks count what they ask `operator new` for,
// once operations of each kind have warmed up. Sanitizers have an operator new of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <execinfo.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "tests/unit/engine/in_heap.h"
#include "tests/unit/engine/world_of_threads.h"

namespace {
thread_local uint64_t allocations = 0;

// Who has allocated first, once that is wrong.
struct Culprit {
  bool is_wanted = false;
  int frames = 0;
  void* stack[24];

  void look() {
    if (!is_wanted) return;
    is_wanted = false;  // backtrace() may allocate itself
    frames = ::backtrace(stack, 24);
  }
};
thread_local Culprit culprit;
}  // namespace

// Not inlined: where only one of a pair is, the compiler takes it for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  culprit.look();
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace rdmacoll::steady_state_test {
namespace {

constexpr int kWarmUp = 200;
constexpr int kOperations = 500;
// So long that the other asks what this rank is in.
constexpr std::chrono::milliseconds kLateness{700};

// Of each kind that a training step repeats; the buffers are reused, as a step's are.
class Step {
 public:
  explicit Step(Communicator& c) : c_(c), data_(kCount, 1), parts_(kCount, 1) {
    const size_t share = kCount / static_cast<size_t>(c.size());
    for (size_t r = 0; r < static_cast<size_t>(c.size()); ++r) {
      from_.push_back({parts_.data() + r * share, share * sizeof(int32_t)});
      to_.push_back({data_.data() + r * share, share * sizeof(int32_t)});
    }
  }
  void run() {
    wait(c_.all_reduce(data_.data(), data_.data(), 1, DType::Int32, ReduceOp::Max, kWaits));
    wait(c_.all_reduce(data_.data(), data_.data(), kCount, DType::Int32, ReduceOp::Max, kWaits));
    wait(c_.broadcast(data_.data(), 100, 0, kWaits));
    wait(c_.all_gather(from_[0], to_, kWaits));
    wait(c_.reduce_scatter(from_, to_[0], DType::Int32, ReduceOp::Max, kWaits));
    wait(c_.all_to_all(from_, to_, kWaits));
    wait(c_.barrier(kWaits));
    for (const uint64_t bytes : {4, 400, 100'000}) exchange(bytes);
  }

 private:
  static constexpr size_t kCount = 60'000;
  static constexpr CallOptions kWaits{.waits = true};  // this thread drives, and counts
  void wait(Result<WorkPtr> started) {
    ASSERT_TRUE(started.ok());
    ASSERT_TRUE(c_.wait(*started.value(), -1, {}).ok());
  }

  // To the next rank and from the one before.
  void exchange(uint64_t bytes) {
    const int size = c_.size();
    auto sent = c_.send({data_.data(), bytes}, (c_.rank() + 1) % size, 3, kWaits);
    auto received = c_.recv({parts_.data(), bytes}, (c_.rank() + size - 1) % size, 3, kWaits);
    ASSERT_TRUE(sent.ok() && received.ok());
    Work* const both[] = {sent.value().get(), received.value().get()};
    ASSERT_TRUE(c_.wait_all(both, -1, {}).ok());
    ASSERT_TRUE(sent.value()->status().ok() && received.value()->status().ok());
  }

  Communicator& c_;
  HeapVector<int32_t> data_, parts_;
  std::vector<ConstBuffer> from_;
  std::vector<MutableBuffer> to_;
};

void count_allocations(Communicator& c) {
  Step step(c);
  for (int i = 0; i < kWarmUp; ++i) step.run();
  const uint64_t before = allocations;
  culprit.is_wanted = true;
  for (int i = 0; i < kOperations; ++i) {
    if (i == kOperations / 2 && c.rank() == 1) std::this_thread::sleep_for(kLateness);
    step.run();
  }
  culprit.is_wanted = false;
  EXPECT_EQ(allocations - before, 0u) << "in " << kOperations << " steps of rank " << c.rank();
  ::backtrace_symbols_fd(culprit.stack, culprit.frames, STDERR_FILENO);
}

TEST(SteadyState, AllocatesNothing) {
  for (const bool in_heap : {false, true}) {
    Config config = config_of_environment();
    config.zero_copy_local_bytes = 1024;
    WorldOfThreads(2, config).run([&](Communicator& c) {
      heap_of_this_rank = in_heap ? c.heap() : nullptr;
      count_allocations(c);
    });
  }
}

}  // namespace
}  // namespace rdmacoll::steady_state_test

#endif
