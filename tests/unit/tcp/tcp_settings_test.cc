// TcpConfig from settings: defaults, each of them, and what is said of bad values.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "csrc/transport/tcp/settings/settings.h"

namespace rdmacoll::tcp::tcp_settings_test {
namespace {

TcpConfig read_with(const std::string& name, const std::string& value) {
  Settings settings;
  settings.set(name, value);
  auto read = TcpConfig::read(settings);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? read.take() : TcpConfig();
}

void expect_refused(const std::string& name, const std::vector<std::string>& values,
                    const std::string& allowed) {
  for (const std::string& value : values) {
    Settings settings;
    settings.set(name, value);
    const Status refused = check_tcp_settings(settings);
    EXPECT_EQ(refused.code(), StatusCode::InvalidArgument) << value;
    EXPECT_EQ(refused.message(),
              name + "='" + value + "' is not valid; use " + allowed + " or unset it");
  }
}

TEST(TcpSettings, DefaultsAreThoseOfTheStruct) {
  for (const TcpConfig& config :
       {TcpConfig::read(Settings()).take(), read_with("RDMACOLL_TCP_PORTS", ""),
        read_with("RDMACOLL_TCP_STREAMS", "")}) {
    EXPECT_EQ(config.interfaces, "");
    EXPECT_EQ(config.ports.first, 0);
    EXPECT_EQ(config.ports.last, 0);
    EXPECT_EQ(config.streams, TcpConfig().streams);
    EXPECT_EQ(config.timeout_ms, TcpConfig().timeout_ms);
  }
}

TEST(TcpSettings, EachIsRead) {
  EXPECT_EQ(read_with("RDMACOLL_SOCKET_IFNAME", "^docker,lo").interfaces, "^docker,lo");
  EXPECT_EQ(read_with("RDMACOLL_TCP_STREAMS", "8").streams, 8);
  EXPECT_EQ(read_with("RDMACOLL_TCP_TIMEOUT_MS", "1000").timeout_ms, 1'000);
}

TEST(TcpSettings, PortsAreOneOrARange) {
  const auto expect_ports = [](const std::string& text, int first, int last) {
    const PortRange ports = read_with("RDMACOLL_TCP_PORTS", text).ports;
    EXPECT_EQ(ports.first, first) << text;
    EXPECT_EQ(ports.last, last) << text;
  };
  expect_ports("4711", 4711, 4711);
  expect_ports("1-65535", 1, 65535);
  expect_ports("20000-20000", 20000, 20000);
}

TEST(TcpSettings, BadValuesAreRefusedWithWhatIsAllowed) {
  expect_refused("RDMACOLL_TCP_PORTS",
                 {"0", "65536", "-", "1-", "-1", "2-1", "0-9", "1-65536", "1-2-3", "1 - 2", " 1",
                  "1,2", "http", "0x10", "+1"},
                 "a port from 1 to 65535, or a range FIRST-LAST");
  expect_refused("RDMACOLL_TCP_STREAMS", {"0", "9", "-1", "two", "1.5"}, "an integer from 1 to 8");
  expect_refused("RDMACOLL_TCP_TIMEOUT_MS", {"999", "3600001", "3s"},
                 "an integer from 1000 to 3600000");
}

TEST(TcpSettings, RanksAgreeOnHowManyStreamsThereAre) {
  Settings one, other;
  one.set("RDMACOLL_TCP_STREAMS", "2");
  other.set("RDMACOLL_TCP_STREAMS", "3");
  EXPECT_NE(tcp_agreement(one), tcp_agreement(other));
  other.set("RDMACOLL_TCP_STREAMS", "2");
  other.set("RDMACOLL_TCP_PORTS", "4711");  // what is each host's own business
  other.set("RDMACOLL_SOCKET_IFNAME", "eth1");
  EXPECT_EQ(tcp_agreement(one), tcp_agreement(other));
}

}  // namespace
}  // namespace rdmacoll::tcp::tcp_settings_test
