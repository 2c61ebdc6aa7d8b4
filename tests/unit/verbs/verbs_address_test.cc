// The address of the verbs transport: what comes back is what was said, and nothing else is a
// address.
#include <gtest/gtest.h>

#include "csrc/transport/verbs/connection/address.h"

namespace rdmacoll::verbs::verbs_address_test {
namespace {

constexpr size_t kHostAt = 56;
constexpr size_t kMtuAt = 54;

Address address() {
  Address address;
  address.process = {1, 2, 3};
  address.pid = 17;
  address.host = "host-17";
  address.port = {{}, 5, IBV_MTU_4096, false};
  address.listener = 42;
  address.listener_key = 0x11111111;
  return address;
}

TEST(Address, ComesBack) {
  auto parsed = parse_address(encode(address()));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().who(), "pid 17 on host host-17");
  EXPECT_EQ(parsed.value().listener, 42u);
  EXPECT_EQ(parsed.value().port.mtu, IBV_MTU_4096);
}

TEST(Address, IsTakenWholeOrNotAtAll) {
  const std::string bytes = encode(address());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_address(bytes.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(parse_address(bytes + '\0').ok());
}

TEST(Address, AnMtuIsOneThatExists) {
  std::string bytes = encode(address());
  bytes[kMtuAt] = 6;
  EXPECT_FALSE(parse_address(bytes).ok());
}

// Found by fuzzing: a name that fills its field was taken, and said again one letter shorter.
TEST(Address, AHostNameEndsWithAZero) {
  std::string bytes = encode(address());
  bytes.replace(kHostAt, std::string::npos, std::string(bytes.size() - kHostAt, 'h'));
  EXPECT_FALSE(parse_address(bytes).ok());
}

}  // namespace
}  // namespace rdmacoll::verbs::verbs_address_test
