// Memory that shards give back: it is not counted any more, and other shards of the table have it
// once nobody can still read it.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/ps/heap_memory.h"

namespace rdmacoll::ps::shard_memory_test {
namespace {

struct StillClock final : Clock {
  int64_t ns = 1;
  int64_t now_ns() const override { return ns; }
};

constexpr uint64_t kBytes = 1024;
constexpr uint64_t kStateBytes = 512;
constexpr int64_t kMinuteNs = 60'000'000'000;

class GivenBack : public testing::Test {
 protected:
  ShardMemoryPiece take(uint32_t table, uint64_t bytes = kBytes) {
    auto taken = memory_.take(table, bytes, kStateBytes);
    EXPECT_TRUE(taken.ok()) << taken.status().message();
    return taken.ok() ? taken.value() : ShardMemoryPiece();
  }
  ShardMemoryPiece take_and_give_back(uint32_t table) {
    const ShardMemoryPiece piece = take(table);
    std::memset(piece.data, 7, kBytes);
    memory_.give_back(table, piece, kBytes, kStateBytes);
    return piece;
  }

  StillClock clock_;
  HeapMemory memory_{2 * (kBytes + kStateBytes), clock_};
};

TEST_F(GivenBack, IsNotCounted) {
  take_and_give_back(1);
  EXPECT_EQ(memory_.used_bytes(), 0u);
  take(1);
  take(1);
  EXPECT_FALSE(memory_.take(1, kBytes, kStateBytes).ok());
}

TEST_F(GivenBack, IsUsedAgainWhenNobodyReadsIt) {
  const ShardMemoryPiece before = take_and_give_back(1);
  const ShardMemoryPiece other = take(1);
  EXPECT_NE(other.data, before.data);
  EXPECT_EQ(before.data[0], std::byte{7});  // who reads it sees nothing else
  clock_.ns += kMinuteNs;
  const ShardMemoryPiece again = take(1);
  EXPECT_EQ(again.data, before.data);
  EXPECT_EQ(again.place.extent, before.place.extent);
  for (uint64_t i = 0; i < kBytes; ++i) ASSERT_EQ(again.data[i], std::byte{0});
}

TEST_F(GivenBack, IsOfItsTableAndItsSize) {
  const ShardMemoryPiece before = take_and_give_back(1);
  clock_.ns += kMinuteNs;
  EXPECT_NE(take(2).data, before.data);
  EXPECT_NE(take(1, kBytes / 2).data, before.data);
}

TEST_F(GivenBack, GoesWithItsTable) {
  const ShardMemoryPiece before = take_and_give_back(1);
  memory_.let_go(1);
  clock_.ns += kMinuteNs;
  EXPECT_NE(take(1).data, before.data);
  memory_.let_go(1);
  EXPECT_EQ(memory_.used_bytes(), 0u);
}

}  // namespace
}  // namespace rdmacoll::ps::shard_memory_test
