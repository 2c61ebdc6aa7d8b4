// Completions, events and failed calls in words: where, what, and the remedy.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "csrc/transport/verbs/device/errors.h"
#include "tests/unit/verbs/fake_host.h"

namespace rdmacoll::verbs_errors_test {
namespace {

class VerbsErrorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host_.add("rxe0");
    table_ = host_.table();
    auto device = Device::open(table_, Config());
    ASSERT_TRUE(device.ok()) << device.status().message();
    device_ = device.take();
  }
  Status completion(ibv_wc_status status, uint32_t vendor_code = 0) const {
    ibv_wc completion{};
    completion.status = status;
    completion.vendor_err = vendor_code;
    return completion_error(completion, "pid 12 on host b", *device_, VerbsConfig());
  }

  FakeHost host_;
  VerbsTable table_{};
  std::unique_ptr<Device> device_;
};

TEST_F(VerbsErrorsTest, NoAnswerSaysHowLongWasTried) {
  const Status status = completion(IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(status.code(), StatusCode::PeerFailed);
  EXPECT_EQ(status.message(),
            "the connection to pid 12 on host b over rxe0 port 1 broke: IBV_WC_RETRY_EXC_ERR (12): "
            "no answer after 7 tries in about 1.9 s; the peer's process or host is gone, a link "
            "between is down, the peer's GID cannot be reached from here (RDMACOLL_GID_INDEX; on "
            "RoCE try ping between the addresses), or the network drops packets (RoCE without PFC "
            "or ECN). RDMACOLL_IB_TIMEOUT=16 and RDMACOLL_IB_RETRY_CNT=6 say how long to try; one "
            "more of the former doubles it");
}

TEST_F(VerbsErrorsTest, EveryStatusIsNamedWithItsNumberAndWhoseFaultItIs) {
  for (uint32_t number = IBV_WC_LOC_LEN_ERR; number <= IBV_WC_TM_RNDV_INCOMPLETE; ++number) {
    const Status status = completion(static_cast<ibv_wc_status>(number), 129);
    EXPECT_NE(status.message().find(" (" + std::to_string(number) + "): "), std::string::npos);
    EXPECT_NE(status.message().find(" (the device's own code: 129)"), std::string::npos);
  }
  EXPECT_EQ(completion(IBV_WC_LOC_QP_OP_ERR).code(), StatusCode::System);
  EXPECT_EQ(completion(IBV_WC_LOC_PROT_ERR).code(), StatusCode::System);
  EXPECT_EQ(completion(IBV_WC_REM_ACCESS_ERR).code(), StatusCode::PeerFailed);
  EXPECT_EQ(completion(IBV_WC_RNR_RETRY_EXC_ERR).code(), StatusCode::PeerFailed);
  EXPECT_EQ(completion(IBV_WC_REM_ACCESS_ERR).message(),
            "the connection to pid 12 on host b over rxe0 port 1 broke: IBV_WC_REM_ACCESS_ERR "
            "(10): the peer's device refuses the key of the memory: the peer's process has ended, "
            "or has released the memory");
}

TEST_F(VerbsErrorsTest, AFailedCallIsNamedWithItsDevice) {
  const Status status = call_error("creating a queue pair", EINVAL, *device_);
  EXPECT_EQ(status.code(), StatusCode::System);
  EXPECT_EQ(status.message(),
            "creating a queue pair on rxe0 port 1 (RoCE, GID 1 = 10.0.0.1) failed: Invalid "
            "argument");
}

// In a process of its own: what is given up does not come back.
void print_refusal(const Device& device) {
  const rlimit limit{65536, 65536};
  if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) std::exit(1);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capset, &header, sets) != 0) std::exit(2);
  std::fprintf(stderr, "%s\n", registration_error(ENOMEM, 4096, device).message().c_str());
  std::exit(0);
}

TEST_F(VerbsErrorsTest, TheLimitOnLockedMemoryComesWithTheLinesThatRaiseIt) {
  EXPECT_EXIT(
      print_refusal(*device_), ::testing::ExitedWithCode(0),
      "registering 4096 bytes of memory on rxe0 port 1 .*failed: Cannot allocate memory. "
      "This process may lock 65536 bytes of memory.*\"\\* soft memlock unlimited\" and "
      "\"\\* hard memlock unlimited\" into /etc/security/limits.conf .*--ulimit memlock=-1");
}

TEST_F(VerbsErrorsTest, AnotherFailureDoesNotBlameTheLimit) {
  EXPECT_EQ(registration_error(EFAULT, 4096, *device_).message(),
            "registering 4096 bytes of memory on rxe0 port 1 (RoCE, GID 1 = 10.0.0.1) failed: Bad "
            "address");
}

TEST_F(VerbsErrorsTest, EventsSayWhatTheyAreAbout) {
  ibv_qp queue_pair{};
  queue_pair.qp_num = 17;
  for (uint32_t type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_WQ_FATAL; ++type) {
    ibv_async_event event{};
    event.event_type = static_cast<ibv_event_type>(type);
    event.element.qp = &queue_pair;
    EXPECT_NE(describe_event(event, *device_).find("rxe0"), std::string::npos);
  }
  ibv_async_event event{};
  event.event_type = IBV_EVENT_QP_ACCESS_ERR;
  event.element.qp = &queue_pair;
  EXPECT_EQ(describe_event(event, *device_),
            "queue pair 17 of rxe0 reports IBV_EVENT_QP_ACCESS_ERR: the peer reached for memory "
            "that this process does not lend it");
  EXPECT_EQ(gravity_of(event), Gravity::Trouble);
  event.event_type = IBV_EVENT_PORT_ERR;
  event.element.port_num = 1;
  EXPECT_NE(describe_event(event, *device_)
                .find("rxe0 port 1 reports IBV_EVENT_PORT_ERR: the link "
                      "is down"),
            std::string::npos);
  EXPECT_EQ(gravity_of(event), Gravity::Trouble);
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  EXPECT_EQ(gravity_of(event), Gravity::Fatal);
}

}  // namespace
}  // namespace rdmacoll::verbs_errors_test
