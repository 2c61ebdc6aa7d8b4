// Device::open() on the host's real RDMA devices, which must be RoCE and active: one or more.
#include "csrc/transport/verbs/device/device.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "csrc/memory/shared_segment.h"
#include "csrc/transport/verbs/device/errors.h"

namespace rdmacoll::device_test {
namespace {

class RealDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<VerbsTable> table = load_libibverbs();
    ASSERT_TRUE(table.ok()) << table.status().message();
    table_ = table.value();
    int count = 0;
    ibv_device** devices = table_.get_device_list(&count);
    for (int i = 0; i < count; ++i) names_.push_back(table_.get_device_name(devices[i]));
    if (devices != nullptr) table_.free_device_list(devices);
    ASSERT_FALSE(names_.empty()) << "this test needs an RDMA device";
  }

  std::unique_ptr<Device> open() {
    auto device = Device::open(table_, config_);
    EXPECT_TRUE(device.ok()) << device.status().message();
    return device.ok() ? device.take() : nullptr;
  }
  Status refusal() {
    auto device = Device::open(table_, config_);
    EXPECT_FALSE(device.ok());
    return device.status();
  }

  VerbsTable table_{};
  std::vector<std::string> names_;
  Config config_;
};

TEST_F(RealDeviceTest, TakesAnAddressThatIsRouted) {
  const auto device = open();
  ASSERT_NE(device, nullptr);
  std::printf("%zu devices; %s\n", names_.size(), device->describe().c_str());
  EXPECT_TRUE(device->address().is_ethernet);
  EXPECT_EQ(device->address().gid.raw[10], 0xff);  // holds an IPv4 address
  EXPECT_EQ(device->address().gid.raw[11], 0xff);
  EXPECT_NE(device->pd(), nullptr);
  EXPECT_GT(device->limits().max_qp, 0);
  EXPECT_GE(device->address().mtu, IBV_MTU_256);
}

TEST_F(RealDeviceTest, GivesTheRanksOfAHostADeviceEachInTurn) {
  for (size_t rank = 0; rank < 2 * names_.size(); ++rank) {
    config_.place.local_rank = static_cast<int64_t>(rank);
    const auto device = open();
    ASSERT_NE(device, nullptr);
    EXPECT_EQ(device->name(), names_[rank % names_.size()]);
  }
}

TEST_F(RealDeviceTest, TakesTheDeviceThatIsNamed) {
  config_.settings.set("RDMACOLL_HCA", "=" + names_.back() + ":1");
  const auto device = open();
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->name(), names_.back());
  config_.settings.set("RDMACOLL_HCA", "nothing");
  EXPECT_NE(refusal().message().find(names_[0] + " is excluded by RDMACOLL_HCA='nothing'"),
            std::string::npos);
}

TEST_F(RealDeviceTest, ListsTheGidsThatThereAre) {
  config_.settings.set("RDMACOLL_GID_INDEX", "200");
  const Status status = refusal();
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_NE(status.message().find("its GIDs are: 0 = "), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("(RoCE v2)"), std::string::npos) << status.message();
}

TEST_F(RealDeviceTest, TakesASmallerMtu) {
  config_.settings.set("RDMACOLL_IB_MTU", "256");
  const auto device = open();
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->address().mtu, IBV_MTU_256);
}

// In a process of its own: what is given up does not come back.
void register_more_than_may_be_locked(const VerbsTable& table) {
  auto device = Device::open(table, Config());
  auto memory = SharedSegment::create(1 << 20);
  const rlimit limit{65536, 65536};
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  if (!device.ok() || !memory.ok() || ::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
      ::syscall(SYS_capset, &header, sets) != 0) {
    std::exit(1);
  }
  std::byte* data = memory.value().data();
  const ibv_mr* registered =
      table.reg_mr_iova2(device.value()->pd(), data, memory.value().bytes(),
                         reinterpret_cast<uint64_t>(data), IBV_ACCESS_LOCAL_WRITE);
  const Status status = registration_error(errno, memory.value().bytes(), *device.value());
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(registered == nullptr ? 0 : 2);
}

TEST_F(RealDeviceTest, TheLimitOnLockedMemoryComesWithTheLinesThatRaiseIt) {
  EXPECT_EXIT(register_more_than_may_be_locked(table_), ::testing::ExitedWithCode(0),
              "registering 1048576 bytes of memory on .* failed: Cannot allocate memory. This "
              "process may lock 65536 bytes of memory.*\\* soft memlock unlimited");
}

}  // namespace
}  // namespace rdmacoll::device_test
