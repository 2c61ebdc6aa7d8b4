// MemoryLimits: the cgroup's limit from the files of either version, laid out as in a container and
// as on a bare host.
#include "csrc/base/memory_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

namespace rdmacoll::memory_limits_test {
namespace {

constexpr uint64_t kNone = MemoryLimits::kNone;

class CgroupFiles : public ::testing::Test {
 protected:
  CgroupFiles() {
    std::string folder = ::testing::TempDir() + "cgroupXXXXXX";
    root_ = ::mkdtemp(folder.data());
  }
  ~CgroupFiles() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + file).parent_path());
    std::ofstream(root_ + file) << text << "\n";
  }
  uint64_t limit() const { return MemoryLimits::cgroup_limit(root_); }

  std::string root_;
};

TEST_F(CgroupFiles, NoneAreNoLimit) { EXPECT_EQ(limit(), kNone); }

TEST_F(CgroupFiles, OfVersion2GiveTheLeastOfAllAbove) {
  write("/proc/self/cgroup", "0::/job/task");
  write("/sys/fs/cgroup/job/task/memory.max", "max");
  EXPECT_EQ(limit(), kNone);
  write("/sys/fs/cgroup/job/memory.max", "2000000");
  EXPECT_EQ(limit(), 2'000'000u);
  write("/sys/fs/cgroup/job/task/memory.max", "3000000");
  EXPECT_EQ(limit(), 2'000'000u);
}

TEST_F(CgroupFiles, OfVersion2InAContainer) {
  write("/proc/self/cgroup", "0::/");
  write("/sys/fs/cgroup/memory.max", "5000000");
  EXPECT_EQ(limit(), 5'000'000u);
  write("/proc/self/cgroup", "0::/../of/the/host");
  EXPECT_EQ(limit(), 5'000'000u);
}

TEST_F(CgroupFiles, OfVersion1) {
  write("/proc/self/cgroup", "11:cpu,cpuacct:/job\n9:memory:/job\n1:name=systemd:/job");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(limit(), kNone);
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "7000000");
  EXPECT_EQ(limit(), 7'000'000u);
}

TEST_F(CgroupFiles, ThatMakeNoSenseAreNoLimit) {
  write("/proc/self/cgroup", "nonsense\n::\n0:\n0::/x");
  write("/sys/fs/cgroup/x/memory.max", "many");
  EXPECT_EQ(limit(), kNone);
}

TEST(MemoryLimits, OfThisProcess) {
  const MemoryLimits limits = MemoryLimits::of_this_process();
  EXPECT_GT(limits.physical_bytes, 1u << 20);
  EXPECT_GT(limits.mapped_bytes, 1u << 20);
  rlimit address{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &address), 0);
  EXPECT_EQ(limits.address_bytes, address.rlim_cur == RLIM_INFINITY ? kNone : address.rlim_cur);
}

TEST(MemoryLimits, WhatIsLeftIsNeverLessThanNothing) {
  EXPECT_EQ(MemoryLimits().unmapped_bytes(), kNone);
  EXPECT_EQ((MemoryLimits{.address_bytes = 100, .mapped_bytes = 60}).unmapped_bytes(), 40u);
  EXPECT_EQ((MemoryLimits{.address_bytes = 100, .mapped_bytes = 160}).unmapped_bytes(), 0u);
}

}  // namespace
}  // namespace rdmacoll::memory_limits_test
