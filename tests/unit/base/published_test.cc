// Published: places that are used and those that are not, and readers while it grows. What it asks
// `operator new` for is counted; sanitizers have an operator new of their own.
#include "csrc/base/published.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
thread_local size_t bytes_asked_for = 0;
}  // namespace

// Not inlined: where only one of a pair is, the compiler takes it for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  bytes_asked_for += bytes;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace rdmacoll::published_test {
namespace {

constexpr size_t kSize = 1000;  // the last chunk is not full

TEST(PublishedTest, WhatIsSetStaysWhereItIsUntilItIsTaken) {
  Published<size_t, kSize> table;
  std::vector<size_t*> places;
  for (size_t index = 0; index < kSize; ++index) {
    EXPECT_EQ(table.at(index), nullptr);
    auto object = std::make_unique<size_t>(index);
    places.push_back(object.get());
    table.set(index, std::move(object));
  }
  for (size_t index = 0; index < kSize; ++index) {
    EXPECT_EQ(table.at(index), places[index]);
    EXPECT_EQ(*table.take(index), index);
    EXPECT_EQ(table.at(index), nullptr);
    EXPECT_EQ(table.take(index), nullptr);
  }
  table.set(7, std::make_unique<size_t>(8));
  EXPECT_EQ(*table.at(7), 8u);
}

TEST(PublishedTest, NothingIsBehindTheEndOrWhereNothingWasSet) {
  Published<int, kSize> table;
  table.set(kSize - 1, std::make_unique<int>(1));
  EXPECT_EQ(*table.at(kSize - 1), 1);
  for (size_t index : {size_t{0}, size_t{64}, kSize - 2, kSize, kSize + 63, SIZE_MAX}) {
    EXPECT_EQ(table.at(index), nullptr) << index;
    EXPECT_EQ(table.take(index), nullptr) << index;
  }
}

TEST(PublishedTest, WhatIsLeftGoesWithTheTable) {
  const auto counted = std::make_shared<int>(0);
  {
    Published<std::shared_ptr<int>, 5> small;
    Published<std::shared_ptr<int>, kSize> large;
    small.set(4, std::make_unique<std::shared_ptr<int>>(counted));
    for (size_t index : {0, 63, 64, 999}) {
      large.set(index, std::make_unique<std::shared_ptr<int>>(counted));
    }
    EXPECT_EQ(counted.use_count(), 6);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PublishedTest, FewOfManyPlacesCostLittle) {
  const size_t before = bytes_asked_for;
  const auto table = std::make_unique<Published<int, 16384>>();
  for (size_t index = 0; index < 8; ++index) table->set(index, std::make_unique<int>(1));
  EXPECT_LE(bytes_asked_for - before, 4096u);
}
#endif

TEST(PublishedTest, ReadersSeeWholeObjectsWhileItGrows) {
  Published<size_t, kSize> table;
  std::thread reader([&] {
    for (size_t index = 0; index < kSize;) {
      const size_t* object = table.at(index);
      if (object == nullptr) {
        std::this_thread::yield();
        continue;
      }
      EXPECT_EQ(*object, index);
      ++index;
    }
  });
  for (size_t index = 0; index < kSize; ++index) {
    table.set(index, std::make_unique<size_t>(index));
  }
  reader.join();
}

}  // namespace
}  // namespace rdmacoll::published_test
