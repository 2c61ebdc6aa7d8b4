// The heap: its memory, and what zero-copy messages mean for operations. That the results
// are right is collectives_test.cc's and the simulation's.
#include "csrc/engine/channel/heap.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/unit/engine/in_heap.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::heap_test {
namespace {

constexpr uint64_t kBytes = 1 << 20;

Config config_with_heap(int64_t bytes) {
  Config config = config_of_environment();
  config.log_level = LogLevel::Error;
  config.heap_bytes = bytes;
  config.zero_copy_local_bytes = config.zero_copy_remote_bytes = 1024;
  return config;
}

TEST(HeapMemory, ComesBackAndIsCounted) {
  WorldOfThreads(1, config_with_heap(128 << 20)).run([](Communicator& c) {
    Heap& heap = *c.heap();
    std::byte* first = heap.allocate(1000);
    std::byte* second = heap.allocate(40 << 20);  // more than the first extent has left
    ASSERT_TRUE(first != nullptr && second != nullptr);
    second[(40 << 20) - 1] = std::byte{1};
    EXPECT_EQ(heap.stats().allocated_bytes, 1024u + (40 << 20));
    EXPECT_EQ(heap.allocate(100 << 20), nullptr);
    heap.free(second);
    heap.free(first);
    const HeapStats stats = heap.stats();
    EXPECT_EQ(stats.allocated_bytes, 0u);
    EXPECT_EQ(stats.peak_bytes, 1024u + (40 << 20));
    EXPECT_EQ(stats.allocations, 2u);
    EXPECT_EQ(stats.refused, 1u);
    EXPECT_EQ(stats.capacity_bytes, 128u << 20);
  });
}

TEST(HeapMemory, NoneIfNoneIsAskedFor) {
  WorldOfThreads(2, config_with_heap(0)).run([](Communicator& c) {
    EXPECT_EQ(c.heap(), nullptr);
    finish(c, c.barrier());
  });
}

// It sees its parent's tensors, but must not deal in memory that the parent deals in.
TEST(HeapMemory, AForkedChildReadsButDoesNotAllocate) {
  WorldOfThreads(1, config_with_heap(1 << 20)).run([](Communicator& c) {
    std::byte* data = c.heap()->allocate(64);
    data[0] = std::byte{42};
    const pid_t child = ::fork();
    if (child == 0) {
      c.heap()->free(data);
      ::_exit(data[0] == std::byte{42} && c.heap()->allocate(64) == nullptr ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(c.heap()->stats().allocated_bytes, 64u);
    c.heap()->free(data);
  });
}

// A root whose buffer is read in place is not done while the other has not read it; one that does
// not, is.
TEST(ZeroCopy, AnOperationIsOverWhenItsSourceIsRead) {
  std::atomic<bool> root_looked{false};
  WorldOfThreads(2, config_with_heap(16 << 20)).run([&](Communicator& c) {
    ASSERT_NE(c.heap(), nullptr);
    for (const bool in_heap : {true, false}) {
      heap_of_this_rank = in_heap ? c.heap() : nullptr;
      HeapVector<uint8_t> data(100'000, static_cast<uint8_t>(c.rank() == 0 ? 7 : 0));
      finish(c, c.barrier());
      root_looked = false;
      finish(c, c.barrier());
      if (c.rank() == 0) {
        auto work = c.broadcast(data.data(), data.size(), 0);
        const Status early = c.wait(*work.value(), 100, {});
        const bool shared = c.paths()[0].transport == "shm";
        EXPECT_EQ(early.code(), in_heap && shared ? StatusCode::Timeout : StatusCode::Ok);
        root_looked = true;
        EXPECT_TRUE(c.wait(*work.value(), -1, {}).ok());
      } else {
        while (!root_looked) std::this_thread::yield();
        finish(c, c.broadcast(data.data(), data.size(), 0));
        EXPECT_EQ(data.back(), 7);
      }
    }
  });
}

// A source may hold anything once its sender's work has failed: nobody may call it a result.
// (What a device has sent is a copy.)
TEST(ZeroCopy, ASourceOfAFailedRankIsNoResult) {
  std::atomic<bool> failed{false};
  WorldOfThreads(2, config_with_heap(16 << 20)).run([&](Communicator& c) {
    if (c.paths()[0].transport != "shm") GTEST_SKIP() << "only what is mapped is read in place";
    heap_of_this_rank = c.heap();
    HeapVector<uint8_t> data(kBytes, static_cast<uint8_t>(1));
    if (c.rank() == 0) {
      auto work = c.broadcast(data.data(), data.size(), 0);
      EXPECT_EQ(c.wait(*work.value(), 50, {}).code(), StatusCode::Timeout);
      c.abort("enough");
      EXPECT_FALSE(c.wait(*work.value(), -1, {}).ok());
      data.assign(data.size(), 99);
      failed = true;
    } else {
      while (!failed) std::this_thread::yield();
      auto work = c.broadcast(data.data(), data.size(), 0);
      const Status status = work.ok() ? c.wait(*work.value(), -1, {}) : work.status();
      EXPECT_FALSE(status.ok());
    }
  });
}

// It will read no more, and what this rank has to show is complete.
TEST(ZeroCopy, ARankThatLeavesNeedNotGiveThemBack) {
  std::atomic<bool> left{false};
  WorldOfThreads(2, config_with_heap(16 << 20)).run([&](Communicator& c) {
    heap_of_this_rank = c.heap();
    HeapVector<uint8_t> data(100'000);
    if (c.rank() == 0) {
      auto work = c.broadcast(data.data(), data.size(), 0);
      while (!left) std::this_thread::yield();
      const Status status = c.wait(*work.value(), -1, {});
      EXPECT_TRUE(status.ok()) << status.message();
    } else {
      c.leave("going home");
      left = true;
    }
  });
}

TEST(ZeroCopy, ATimeoutNamesTheRankThatHasNotGivenThemBack) {
  std::atomic<bool> timed_out{false};
  WorldOfThreads(2, config_with_heap(16 << 20)).run([&](Communicator& c) {
    if (c.paths()[0].transport != "shm") GTEST_SKIP() << "only what is mapped is read in place";
    heap_of_this_rank = c.heap();
    HeapVector<uint8_t> data(100'000);
    if (c.rank() == 0) {
      c.set_timeout_ms(100);
      const Status status = c.wait(*c.broadcast(data.data(), data.size(), 0).value(), -1, {});
      EXPECT_EQ(status.code(), StatusCode::Timeout);
      EXPECT_NE(status.message().find("waits for rank(s) 1"), std::string::npos)
          << status.message();
      timed_out = true;
    } else {
      while (!timed_out) std::this_thread::yield();
    }
  });
}

}  // namespace
}  // namespace rdmacoll::heap_test
