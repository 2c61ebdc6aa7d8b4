// Nearness, on a made-up /sys: two sockets of two NUMA nodes each, the third node is missing.
#include "csrc/transport/verbs/device/nearness.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rdmacoll::verbs::nearness_test {
namespace {

class NearnessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "sysfs.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    write("devices/system/node/online", "0-1,3");
    write("devices/system/node/node0/cpulist", "0-3");
    write("devices/system/node/node1/cpulist", "4-7,12");
    write("devices/system/node/node3/cpulist", "8-11");
    write("devices/system/node/node0/distance", "10 12 32");
    write("devices/system/node/node1/distance", "12 10 32");
    write("devices/system/node/node3/distance", "32 32 10");
    write("class/infiniband/on0/device/numa_node", "0");
    write("class/infiniband/on1/device/numa_node", "1");
    write("class/infiniband/on3/device/numa_node", "3");
    write("class/infiniband/virtual/device/numa_node", "-1");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& line) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << line << "\n";
  }
  std::vector<int> distances(const std::string& cores) const {
    const Nearness nearness(cores, root_);
    return {nearness.distance_of("on0"), nearness.distance_of("on1"), nearness.distance_of("on3"),
            nearness.distance_of("virtual"), nearness.distance_of("rxe0")};
  }

  std::filesystem::path root_;
};

TEST_F(NearnessTest, IsTheKernelsDistanceFromTheNearestNodeAllowed) {
  constexpr int kUnknown = Nearness::kUnknown;
  EXPECT_EQ(distances("0-1"), (std::vector<int>{10, 12, 32, kUnknown, kUnknown}));
  EXPECT_EQ(distances("12"), (std::vector<int>{12, 10, 32, kUnknown, kUnknown}));
  EXPECT_EQ(distances("3,11"), (std::vector<int>{10, 12, 10, kUnknown, kUnknown}));
  EXPECT_EQ(distances("0-12"), (std::vector<int>{10, 10, 10, kUnknown, kUnknown}));
}

TEST_F(NearnessTest, IsUnknownWithoutAListOfCoresOrNodes) {
  constexpr int kUnknown = Nearness::kUnknown;
  EXPECT_EQ(distances(""), std::vector<int>(5, kUnknown));
  EXPECT_EQ(Nearness("0-3", "/nonexistent").distance_of("on0"), kUnknown);
}

TEST_F(NearnessTest, OfTheCallingThreadKnowsNoSuchDevice) {
  EXPECT_EQ(Nearness::of_calling_thread().distance_of("no such device"), Nearness::kUnknown);
}

}  // namespace
}  // namespace rdmacoll::verbs::nearness_test
