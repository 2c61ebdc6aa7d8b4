// Which interfaces of a host are used: NCCL's filter, what is left out without one, and the order.
#include "csrc/transport/tcp/network/interfaces.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/tcp/ip_of.h"

namespace rdmacoll::tcp::interfaces_test {
namespace {

Interface interface(const char* name, const char* ip, int64_t mbit_per_s = 0) {
  return {name, ip_of(ip), 24, mbit_per_s};
}

// "eth0 eth1", or the words of the error.
std::string chosen(std::vector<Interface> all, const std::string& filter) {
  auto chosen = choose_interfaces(std::move(all), filter);
  if (!chosen.ok()) return chosen.status().message();
  std::string names;
  for (const Interface& one : chosen.value()) names += (names.empty() ? "" : " ") + one.name;
  return names;
}

std::vector<Interface> a_host() {
  return {interface("lo", "127.0.0.1"), interface("eth0", "10.0.0.1"),
          interface("eth01", "10.0.1.1"), interface("ib0", "10.0.2.1"),
          interface("docker0", "172.17.0.1")};
}

TEST(Interfaces, TheFilterIsNcclsSyntax) {
  struct Row {
    const char* filter;
    const char* names;
  };
  for (const Row& row : {
           Row{"eth", "eth0 eth01"},       // prefixes
           Row{"eth0", "eth0 eth01"},      //
           Row{"=eth0", "eth0"},           // exact names
           Row{"=eth", nullptr},           //
           Row{"ib,eth01", "eth01 ib0"},   // several
           Row{"=ib0,lo", "lo ib0"},       //
           Row{"^eth", "lo ib0 docker0"},  // all but these
           Row{"^=eth0", "lo eth01 ib0 docker0"}, Row{"^docker,lo", "eth0 eth01 ib0"},
           Row{"docker", "docker0"},  // which is left out without a filter
           Row{"lo", "lo"},           //
           Row{",,ib,,", "ib0"},      // empty names are none
           Row{"^", "lo eth0 eth01 ib0 docker0"}, Row{"wlan", nullptr}, Row{"=", nullptr},
           Row{",", nullptr}, Row{"^eth,ib,lo,docker", nullptr},
           Row{"ETH", nullptr},  // as the kernel writes them
       }) {
    const std::string names = chosen(a_host(), row.filter);
    if (row.names != nullptr) {
      EXPECT_EQ(names, row.names) << row.filter;
    } else {
      EXPECT_EQ(names, std::string("RDMACOLL_SOCKET_IFNAME='") + row.filter +
                           "' takes none of the interfaces of this host: lo (127.0.0.1), eth0 "
                           "(10.0.0.1), eth01 (10.0.1.1), ib0 (10.0.2.1), docker0 (172.17.0.1)");
    }
  }
}

TEST(Interfaces, WithoutAFilterThoseForThisHostAloneAreTheLastResort) {
  EXPECT_EQ(chosen(a_host(), ""), "eth0 eth01 ib0");
  for (const char* name : {"docker0", "br-12ab", "virbr0", "veth9f", "cni0", "podman1"}) {
    EXPECT_EQ(chosen({interface(name, "172.17.0.1"), interface("wlan0", "10.0.0.1")}, ""), "wlan0");
    EXPECT_EQ(chosen({interface(name, "172.17.0.1"), interface("lo", "127.0.0.1")}, ""),
              std::string(name) + " lo");
  }
  EXPECT_EQ(chosen({interface("dummy0", "127.0.0.2"), interface("br0", "10.0.0.1")}, ""), "br0");
  EXPECT_EQ(chosen({interface("lo", "::1")}, ""), "lo");
}

TEST(Interfaces, LinkLocalAddressesAreNeverUsed) {
  EXPECT_EQ(chosen({interface("eth0", "fe80::1"), interface("eth0", "10.0.0.1")}, ""), "eth0");
  EXPECT_EQ(chosen({interface("eth0", "169.254.9.9")}, ""),
            "this host has no network interface that is up");
  EXPECT_EQ(chosen({interface("eth0", "fe80::1"), interface("lo", "127.0.0.1")}, "eth0"),
            "RDMACOLL_SOCKET_IFNAME='eth0' takes none of the interfaces of this host: lo "
            "(127.0.0.1)");
}

TEST(Interfaces, NoneIsSaid) {
  auto none = choose_interfaces({}, "");
  EXPECT_EQ(none.status().code(), StatusCode::Unsupported);
  EXPECT_EQ(choose_interfaces({}, "eth0").status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(chosen({}, "eth0"),
            "RDMACOLL_SOCKET_IFNAME='eth0' takes none of the interfaces of this host: none");
}

TEST(Interfaces, TheFastestComesFirstAndEqualOnesStayInTheirOrder) {
  EXPECT_EQ(chosen({interface("a", "10.0.0.1", 1'000), interface("b", "10.0.1.1"),
                    interface("c", "10.0.2.1", 100'000), interface("d", "10.0.3.1", 1'000)},
                   ""),
            "c a d b");
}

TEST(Interfaces, NoMoreThanAnAddressHolds) {
  std::vector<Interface> many;
  for (int i = 0; i < 40; ++i) many.push_back(interface("eth0", "10.0.0.1", i));
  const auto kept = choose_interfaces(many, "").take();
  EXPECT_EQ(kept.size(), 16u);
  EXPECT_EQ(kept[0].mbit_per_s, 39);
}

TEST(Interfaces, TheSystemsAreThoseThatAreUpWithTheirNetworks) {
  auto all = system_interfaces();
  ASSERT_TRUE(all.ok()) << all.status().message();
  const auto lo = std::find_if(all.value().begin(), all.value().end(),
                               [](const Interface& one) { return text_of(one.ip) == "127.0.0.1"; });
  ASSERT_NE(lo, all.value().end()) << "this host has no 127.0.0.1";
  EXPECT_EQ(lo->name, "lo");
  EXPECT_EQ(lo->prefix_bits, 8u);
  EXPECT_EQ(lo->mbit_per_s, 0);
}

}  // namespace
}  // namespace rdmacoll::tcp::interfaces_test
