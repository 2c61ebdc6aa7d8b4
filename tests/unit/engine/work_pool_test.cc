// WorkPool: works that are new whoever had their memory before, and that outlive their pool.
#include "csrc/engine/work/work_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace rdmacoll::work_pool_test {
namespace {

TEST(WorkPool, AWorkInUsedMemoryIsOpen) {
  WorkPool pool;
  WorkPtr first = pool.make();
  const Work* place = first.get();
  first->set_source_rank(3);
  static_cast<void>(first->finish(Status(StatusCode::Timeout, "late")));
  first.reset();
  const WorkPtr second = pool.make();
  EXPECT_EQ(second.get(), place);
  EXPECT_FALSE(second->done());
  EXPECT_EQ(second->source_rank(), -1);
}

// With sanitizers also that the memory is freed, once, and by the last.
TEST(WorkPool, WorksOutliveTheirPool) {
  auto pool = std::make_unique<WorkPool>();
  pool->make().reset();  // memory that nobody uses when the pool goes
  const WorkPtr spare = pool->make();
  WorkPtr work = pool->make();
  pool.reset();
  static_cast<void>(work->finish(Status()));
  EXPECT_TRUE(work->done());
  work.reset();
  EXPECT_FALSE(spare->done());
}

TEST(WorkPool, ThreadsGiveBackWhileThePoolGoes) {
  constexpr int kThreads = 4;
  constexpr int kWorks = 2000;
  auto pool = std::make_unique<WorkPool>();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    std::vector<WorkPtr> works;
    for (int k = 0; k < kWorks; ++k) works.push_back(pool->make());
    threads.emplace_back([works = std::move(works)]() mutable { works.clear(); });
  }
  pool.reset();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rdmacoll::work_pool_test
