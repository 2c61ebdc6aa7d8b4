// IpAddress and Endpoint: as text, as the calls of sockets want them, and what kind they are of.
#include "csrc/transport/tcp/network/ip.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/ip_of.h"

namespace rdmacoll::tcp::ip_test {
namespace {

TEST(Ip, ComesBackAsTextAndAsASocketAddress) {
  for (const char* text : {"10.0.0.1", "255.255.255.255", "fd00::1", "::1", "2001:db8::ff00:42"}) {
    const IpAddress ip = ip_of(text);
    EXPECT_EQ(text_of(ip), text);
    const SocketAddress address = socket_address({ip, 4711});
    IpAddress again;
    ASSERT_TRUE(read_ip(address.get(), &again));
    EXPECT_EQ(again, ip);
    EXPECT_EQ(address.bytes, ip.is_v4() ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  }
  EXPECT_EQ(text_of(Endpoint{ip_of("10.0.0.1"), 4711}), "10.0.0.1:4711");
  EXPECT_EQ(text_of(Endpoint{ip_of("fd00::1"), 80}), "[fd00::1]:80");
}

TEST(Ip, PortsAreInTheNetworksOrder) {
  const SocketAddress address = socket_address({ip_of("10.0.0.1"), 0x1234});
  EXPECT_EQ(reinterpret_cast<const sockaddr_in*>(address.get())->sin_port, htons(0x1234));
}

TEST(Ip, WhatIsNoneIsNotRead) {
  IpAddress ip;
  EXPECT_FALSE(read_ip(nullptr, &ip));
  sockaddr other{};
  other.sa_family = AF_UNIX;
  EXPECT_FALSE(read_ip(&other, &ip));
}

TEST(Ip, WhatKindItIsOf) {
  struct Row {
    const char* ip;
    bool v4, loopback, link_local;
  };
  for (const Row& row : {
           Row{"127.0.0.1", true, true, false},
           Row{"127.9.9.9", true, true, false},
           Row{"128.0.0.1", true, false, false},
           Row{"::1", false, true, false},
           Row{"::2", false, false, false},
           Row{"::", false, false, false},
           Row{"169.254.0.1", true, false, true},
           Row{"169.253.0.1", true, false, false},
           Row{"fe80::1", false, false, true},
           Row{"febf::1", false, false, true},
           Row{"fec0::1", false, false, false},
           Row{"::ffff:127.0.0.1", true, true, false},
       }) {
    const IpAddress ip = ip_of(row.ip);
    EXPECT_EQ(ip.is_v4(), row.v4) << row.ip;
    EXPECT_EQ(ip.is_loopback(), row.loopback) << row.ip;
    EXPECT_EQ(ip.is_link_local(), row.link_local) << row.ip;
  }
}

TEST(Ip, NetworksAreComparedByTheirPrefix) {
  const auto share = [](const char* one, const char* other, unsigned bits) {
    return ip_of(one).shares_prefix(ip_of(other), bits);
  };
  EXPECT_TRUE(share("10.1.2.3", "10.1.2.99", 24));
  EXPECT_FALSE(share("10.1.2.3", "10.1.3.3", 24));
  EXPECT_TRUE(share("10.1.2.3", "10.1.3.3", 23));
  EXPECT_FALSE(share("10.1.2.3", "10.1.2.4", 32));
  EXPECT_TRUE(share("10.1.2.3", "192.168.0.1", 0));
  EXPECT_TRUE(share("10.1.2.3", "10.1.2.3", 32));
  EXPECT_FALSE(share("10.1.2.3", "fd00::1", 0));
  EXPECT_TRUE(share("fd00:1::1", "fd00:1::2", 64));
  EXPECT_FALSE(share("fd00:1::1", "fd00:2::1", 32));
  EXPECT_FALSE(share("fd00::1", "fd00::2", 128));
}

}  // namespace
}  // namespace rdmacoll::tcp::ip_test
