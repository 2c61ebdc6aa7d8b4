// Device::open(): what it opens and leaves open, and what it says of a host without a usable one.
#include "csrc/transport/verbs/device/device.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/unit/verbs/fake_host.h"

namespace rdmacoll::device_test {
namespace {

class DeviceTest : public ::testing::Test {
 protected:
  ~DeviceTest() override {
    device_.reset();
    EXPECT_EQ(host_.contexts_open, 0);
    EXPECT_EQ(host_.domains_open, 0);
    EXPECT_EQ(host_.lists_open, 0);
  }

  // What the device that is opened calls itself.
  std::string opened() {
    table_ = host_.table();
    auto device = Device::open(table_, config_);
    EXPECT_TRUE(device.ok()) << device.status().message();
    if (!device.ok()) return "";
    device_ = device.take();
    EXPECT_NE(device_->pd(), nullptr);
    EXPECT_EQ(host_.contexts_open, 1);
    return device_->describe();
  }
  std::string refused(StatusCode code) {
    const VerbsTable table = host_.table();
    const auto device = Device::open(table, config_);
    EXPECT_EQ(device.status().code(), code);
    EXPECT_EQ(host_.contexts_open, 0);
    return device.status().message();
  }

  FakeHost host_;
  Config config_;
  VerbsTable table_{};
  std::unique_ptr<Device> device_;
};

TEST_F(DeviceTest, KnowsHowItsPortIsReached) {
  host_.add("rxe0");
  EXPECT_EQ(opened(), "rxe0 port 1 (RoCE, GID 1 = 10.0.0.1)");
  EXPECT_EQ(device_->name(), "rxe0");
  EXPECT_EQ(device_->port(), 1);
  EXPECT_EQ(device_->gid_index(), 1);
  EXPECT_TRUE(device_->address().is_ethernet);
  EXPECT_EQ(device_->address().lid, 0);
  EXPECT_EQ(device_->address().mtu, IBV_MTU_1024);
  EXPECT_EQ(device_->address().gid.raw[15], 1);
}

TEST_F(DeviceTest, OfInfinibandIsReachedByLid) {
  FakeDevice& device = host_.add("mlx5_0");
  device.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
  device.ports[0].lid = 17;
  EXPECT_EQ(opened(), "mlx5_0 port 1 (InfiniBand, LID 17)");
  EXPECT_EQ(device_->address().lid, 17);
  EXPECT_EQ(device_->gid_index(), 0);
}

TEST_F(DeviceTest, SpreadsTheRanksOfAHostOverItsDevices) {
  host_.add("rxe1");
  host_.add("rxe2");
  config_.place.local_rank = 1;
  EXPECT_EQ(opened(), "rxe2 port 1 (RoCE, GID 1 = 10.0.0.1)");
  EXPECT_EQ(device_->reason(), "by LOCAL_RANK out of the 2 nearest ports");
}

TEST_F(DeviceTest, TakesAnActivePortBeforeAnyOther) {
  host_.add("rxe1").ports[0].state = IBV_PORT_DOWN;
  FakeDevice& second = host_.add("rxe2");
  second.ports[0].state = IBV_PORT_INIT;
  FakeHost::add_port(second);
  EXPECT_EQ(opened(), "rxe2 port 2 (RoCE, GID 1 = 10.0.0.1)");
}

TEST_F(DeviceTest, DoesNotTouchAnExcludedDevice) {
  FakeDevice& first = host_.add("rxe1");
  host_.add("rxe2");
  config_.settings.set("RDMACOLL_HCA", "^rxe1");
  EXPECT_EQ(opened(), "rxe2 port 1 (RoCE, GID 1 = 10.0.0.1)");
  EXPECT_EQ(first.times_opened, 0);
}

TEST_F(DeviceTest, TakesTheGidAndThePortThatAreAskedFor) {
  FakeHost::add_port(host_.add("rxe0"));
  config_.settings.set("RDMACOLL_GID_INDEX", "0");
  config_.settings.set("RDMACOLL_IB_PORT", "2");
  EXPECT_EQ(opened(), "rxe0 port 2 (RoCE, GID 0 = fe80::1)");
}

TEST_F(DeviceTest, TakesNoLargerMtuThanAskedFor) {
  host_.add("rxe0");
  config_.settings.set("RDMACOLL_IB_MTU", "256");
  opened();
  EXPECT_EQ(device_->address().mtu, IBV_MTU_256);
}

TEST_F(DeviceTest, RefusesAnMtuThatThePortDoesNotCarry) {
  host_.add("rxe0");
  config_.settings.set("RDMACOLL_IB_MTU", "4096");
  EXPECT_EQ(refused(StatusCode::InvalidArgument),
            "RDMACOLL_IB_MTU=4096 is more than the active MTU of rxe0 port 1 (RoCE, GID 1 = "
            "10.0.0.1), 1024 bytes; unset it, or raise the MTU of the network interface (ip link "
            "set <interface> mtu 4200) and of the switch");
}

TEST_F(DeviceTest, RefusesAGidThatThereIsNot) {
  host_.add("rxe0");
  config_.settings.set("RDMACOLL_GID_INDEX", "7");
  EXPECT_EQ(refused(StatusCode::InvalidArgument),
            "RDMACOLL_GID_INDEX=7 does not exist at rxe0 port 1; its GIDs are: 0 = fe80::1 (RoCE "
            "v2), 1 = 10.0.0.1 (RoCE v2); choose one of them or unset it");
}

TEST_F(DeviceTest, RefusesABadListOfDevices) {
  host_.add("rxe0");
  config_.settings.set("RDMACOLL_HCA", "rxe0,");
  EXPECT_NE(refused(StatusCode::InvalidArgument).find("RDMACOLL_HCA='rxe0,' is not valid"),
            std::string::npos);
}

TEST_F(DeviceTest, ListsWhatIsWrongWithEachDevice) {
  host_.add("efa0").transport_type = IBV_TRANSPORT_UNKNOWN;
  host_.add("mlx5_0").open_error = EACCES;
  host_.add("mlx5_1");
  host_.add("rxe0").ports[0].state = IBV_PORT_DOWN;
  config_.settings.set("RDMACOLL_HCA", "^mlx5_1");
  EXPECT_EQ(refused(StatusCode::Unsupported),
            "no RDMA device of this host can be used: efa0 is neither InfiniBand nor RoCE, and has "
            "no reliable connections; mlx5_0 cannot be opened (are /dev/infiniband/uverbs* there, "
            "and open to this user? in a container: --device=/dev/infiniband): Permission denied; "
            "mlx5_1 is excluded by RDMACOLL_HCA='^mlx5_1'; rxe0 port 1 is DOWN: bring its network "
            "interface up (ip link set <interface> up), or check the cable");
}

TEST_F(DeviceTest, SaysWhichPortIsLeftOutByWhichVariable) {
  FakeHost::add_port(host_.add("rxe0"));
  config_.settings.set("RDMACOLL_HCA", "rxe0:1");
  config_.settings.set("RDMACOLL_IB_PORT", "2");
  EXPECT_EQ(refused(StatusCode::Unsupported),
            "no RDMA device of this host can be used: rxe0 port 1 is excluded by "
            "RDMACOLL_IB_PORT=2; rxe0 port 2 is excluded by RDMACOLL_HCA='rxe0:1'");
}

TEST_F(DeviceTest, SaysHowToGetADeviceWhereThereIsNone) {
  EXPECT_NE(refused(StatusCode::Unsupported).find("rdma link add rxe0 type rxe"),
            std::string::npos);
}

TEST_F(DeviceTest, NamesTheCallThatFailed) {
  host_.add("rxe0");
  host_.domain_error = EINVAL;
  EXPECT_EQ(
      refused(StatusCode::System),
      "allocating a protection domain on rxe0 port 1 (RoCE, GID 1 = 10.0.0.1) failed: Invalid "
      "argument");
}

TEST_F(DeviceTest, WarnsWhereAForkMayHarm) {
  host_.add("rxe0");
  host_.fork_error = EINVAL;
  ::testing::internal::CaptureStderr();
  opened();
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("warning: ibv_fork_init: Invalid"),
            std::string::npos);
}

}  // namespace
}  // namespace rdmacoll::device_test
