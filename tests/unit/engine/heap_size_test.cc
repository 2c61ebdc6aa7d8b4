// The size of a heap under the limits of its process, and the largest heap of a peer that it maps.
#include "csrc/engine/channel/heap_size.h"

#include <gtest/gtest.h>

namespace rdmacoll::heap_size_test {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kNone = MemoryLimits::kNone;

Config ranks_of_host(int64_t ranks, int64_t heap_bytes = -1) {
  Config config;
  config.place.local_world = ranks;
  config.heap_bytes = heap_bytes;
  return config;
}

HeapSize chosen(const Config& config, const MemoryLimits& limits) {
  auto size = choose_heap_size(config, limits);
  EXPECT_TRUE(size.ok()) << size.status().message();
  return size.take();
}

TEST(HeapSize, IsHalfOfWhatTheMachineOrTheCgroupHas) {
  EXPECT_EQ(chosen(ranks_of_host(2), {.physical_bytes = 64 * kGiB}).bytes, 32 * kGiB);
  const HeapSize in_cgroup =
      chosen(ranks_of_host(2), {.physical_bytes = 64 * kGiB, .cgroup_bytes = 10 * kGiB});
  EXPECT_EQ(in_cgroup.bytes, 5 * kGiB);
  EXPECT_EQ(in_cgroup.warning, "");
}

TEST(HeapSize, LeavesAddressSpaceForTheHeapsOfAllRanks) {
  for (const int64_t ranks : {1, 2, 8, 64}) {
    MemoryLimits limits{
        .physical_bytes = 640 * kGiB, .address_bytes = 60 * kGiB, .mapped_bytes = 2 * kGiB};
    const HeapSize size = chosen(ranks_of_host(ranks), limits);
    EXPECT_NE(size.warning.find("ulimit -v"), std::string::npos) << size.warning;
    EXPECT_LE(size.bytes * static_cast<uint64_t>(ranks), limits.unmapped_bytes() / 2);
    limits.mapped_bytes += size.bytes;
    if (ranks == 1) continue;
    EXPECT_GE(largest_peer_heap(ranks_of_host(ranks), limits), size.bytes);
  }
}

TEST(HeapSize, IsNothingWhereTooLittleIsLeft) {
  const MemoryLimits limits{
      .physical_bytes = 64 * kGiB, .address_bytes = kGiB, .mapped_bytes = kGiB - (100 << 20)};
  const HeapSize size = chosen(ranks_of_host(2), limits);
  EXPECT_EQ(size.bytes, 0u);
  EXPECT_NE(size.warning.find("there is no heap"), std::string::npos) << size.warning;
  EXPECT_NE(size.warning.find("RDMACOLL_HEAP_BYTES"), std::string::npos) << size.warning;
}

TEST(HeapSize, ThatIsAskedForIsTakenOrAnError) {
  const MemoryLimits limits{.physical_bytes = kGiB,
                            .cgroup_bytes = kGiB,
                            .address_bytes = 10 * kGiB,
                            .mapped_bytes = kGiB};
  EXPECT_EQ(chosen(ranks_of_host(2, 8 * kGiB), limits).bytes, 8 * kGiB);
  EXPECT_EQ(chosen(ranks_of_host(2, 0), limits).bytes, 0u);
  const auto refused = choose_heap_size(ranks_of_host(2, 9 * kGiB + 1), limits);
  EXPECT_EQ(refused.status().code(), StatusCode::InvalidArgument);
  for (const char* part : {"RDMACOLL_HEAP_BYTES=9663676417", "ulimit -v", "10737418240"}) {
    EXPECT_NE(refused.status().message().find(part), std::string::npos)
        << refused.status().message();
  }
}

TEST(HeapSize, OfPeersIsLimitedOnlyWhereAddressSpaceIs) {
  EXPECT_EQ(largest_peer_heap(ranks_of_host(0), {}), kNone);
  const MemoryLimits limits{.address_bytes = 9 * kGiB, .mapped_bytes = kGiB};
  EXPECT_EQ(largest_peer_heap(ranks_of_host(0), limits), 0u) << "nobody says how many there are";
  EXPECT_EQ(largest_peer_heap(ranks_of_host(3), limits), 2 * kGiB);
}

}  // namespace
}  // namespace rdmacoll::heap_size_test
