// SharedSegment: what is mapped is what was made, and a descriptor that lies is refused.
#include "csrc/memory/shared_segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace rdmacoll::shared_segment_test {
namespace {

TEST(SharedSegment, IsZeroedAndSharedWithWhoeverMapsItsDescriptor) {
  Result<SharedSegment> made = SharedSegment::create(10'000);
  ASSERT_TRUE(made.ok()) << made.status().message();
  SharedSegment& mine = made.value();
  EXPECT_TRUE(std::all_of(mine.data(), mine.data() + mine.bytes(),
                          [](std::byte byte) { return byte == std::byte{0}; }));

  Result<SharedSegment> mapped = SharedSegment::map(UniqueFd(::dup(mine.fd())), 10'000);
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  ASSERT_NE(mapped.value().data(), mine.data());
  mine.data()[9'999] = std::byte{42};
  EXPECT_EQ(mapped.value().data()[9'999], std::byte{42});
}

TEST(SharedSegment, OutlivesItsMakerAndMoves) {
  Result<SharedSegment> made = SharedSegment::create(64);
  ASSERT_TRUE(made.ok());
  Result<SharedSegment> mapped = SharedSegment::map(UniqueFd(::dup(made.value().fd())), 64);
  ASSERT_TRUE(mapped.ok());
  made.value().data()[0] = std::byte{7};
  {
    const SharedSegment gone = made.take();
  }
  SharedSegment moved = mapped.take();
  EXPECT_EQ(moved.data()[0], std::byte{7});
  EXPECT_EQ(moved.bytes(), 64u);
}

TEST(SharedSegment, IsNotInheritedByExecutedPrograms) {
  Result<SharedSegment> made = SharedSegment::create(64);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(::fcntl(made.value().fd(), F_GETFD) & FD_CLOEXEC);
}

// Whether the kernel has been asked for huge pages there, and would give them if it is set so.
bool asks_for_huge_pages(const std::byte* data) {
  std::ifstream maps("/proc/self/smaps");
  char wanted[32];
  std::snprintf(wanted, sizeof(wanted), "%zx-", reinterpret_cast<size_t>(data));
  std::string line;
  for (bool here = false; std::getline(maps, line);) {
    if (line.starts_with(wanted)) here = true;
    if (here && line.starts_with("VmFlags:")) return line.find(" hg") != std::string::npos;
  }
  ADD_FAILURE() << "no mapping at " << wanted;
  return false;
}

TEST(SharedSegment, AsksForHugePagesWhereItIsLarge) {
  const bool has_any = ::access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0;
  for (const auto& [bytes, large] : {std::pair(64ull << 20, true), std::pair(32ull << 20, false)}) {
    auto owner = SharedSegment::create(bytes).take();
    auto other = SharedSegment::map(UniqueFd(::dup(owner.fd())), bytes).take();
    EXPECT_EQ(asks_for_huge_pages(owner.data()), large && has_any) << bytes;
    EXPECT_EQ(asks_for_huge_pages(other.data()), large && has_any) << bytes;
  }
}

TEST(SharedSegment, HasASizeThatNobodyCanChange) {
  Result<SharedSegment> made = SharedSegment::create(8'192);
  ASSERT_TRUE(made.ok());
  EXPECT_NE(::ftruncate(made.value().fd(), 4'096), 0);
  EXPECT_NE(::ftruncate(made.value().fd(), 16'384), 0);
}

TEST(SharedSegment, RefusesImpossibleSizes) {
  EXPECT_EQ(SharedSegment::create(0).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(SharedSegment::create(std::numeric_limits<uint64_t>::max()).status().code(),
            StatusCode::InvalidArgument);
  // As large as a file may be, but beyond any address space.
  EXPECT_EQ(SharedSegment::create(std::numeric_limits<int64_t>::max()).status().code(),
            StatusCode::System);
}

TEST(SharedSegment, RefusesADescriptorThatHoldsLessThanItsSenderSays) {
  Result<SharedSegment> made = SharedSegment::create(4'096);
  ASSERT_TRUE(made.ok());
  const Status status = SharedSegment::map(UniqueFd(::dup(made.value().fd())), 8'192).status();
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_NE(status.message().find("4096"), std::string::npos) << status.message();
}

TEST(SharedSegment, RefusesADescriptorWhoseSizeIsNotSealed) {
  UniqueFd open_ended(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open_ended.get(), 4'096), 0);
  EXPECT_EQ(SharedSegment::map(open_ended, 4'096).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(SharedSegment::map(UniqueFd(::dup(STDERR_FILENO)), 1).status().code(),
            StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace rdmacoll::shared_segment_test
