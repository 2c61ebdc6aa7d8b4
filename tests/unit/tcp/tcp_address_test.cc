// The address and the keys of the tcp transport: what comes back is what was said, and nothing else
// is one.
#include <gtest/gtest.h>

#include <cstring>

#include "csrc/base/limits.h"
#include "csrc/transport/tcp/connection/address.h"
#include "csrc/transport/transport.h"
#include "tests/unit/tcp/ip_of.h"

namespace rdmacoll::tcp::tcp_address_test {
namespace {

constexpr size_t kEndpointsAt = 28;
constexpr size_t kHostAt = 32;
constexpr size_t kHostBytes = 64;

Address address(size_t endpoints = 2) {
  Address made{{1, 2, 3}, 17, "host-17", {}};
  for (size_t i = 0; i < endpoints; ++i) {
    made.endpoints.push_back({ip_of(i % 2 == 0 ? "10.0.0.1" : "fd00::1"), uint16_t(4711 + i)});
  }
  return made;
}

// What is no longer parsed when it is cut, or goes on.
template <typename Parse>
void expect_whole_or_not_at_all(const std::string& bytes, const Parse& parse) {
  EXPECT_TRUE(parse(bytes).ok());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse(bytes.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(parse(bytes + '\0').ok());
  const Status refused = parse("?" + bytes.substr(1)).status();
  EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
  EXPECT_NE(refused.message().find("install the same rdmacoll"), std::string::npos);
}

TEST(TcpAddress, ComesBack) {
  for (const size_t endpoints : {size_t{1}, size_t{2}, kMaxEndpoints}) {
    const Address said = address(endpoints);
    const std::string bytes = encode(said);
    EXPECT_LT(bytes.size(), 1024u);
    auto parsed = parse_address(bytes);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed.value().process, said.process);
    EXPECT_EQ(parsed.value().who(), "process 17 on host 'host-17'");
    EXPECT_EQ(parsed.value().endpoints, said.endpoints);
  }
  EXPECT_EQ(text_of(address().endpoints), "10.0.0.1:4711, [fd00::1]:4712");
}

TEST(TcpAddress, IsTakenWholeOrNotAtAll) {
  expect_whole_or_not_at_all(encode(address()), parse_address);
}

TEST(TcpAddress, HasAsManyEndpointsAsItSaysAndAtLeastOne) {
  EXPECT_FALSE(parse_address(encode(address(0))).ok());
  const std::string bytes = encode(address(3));
  for (const uint32_t count : {0u, 2u, 4u, 17u, 0xFFFFFFFFu, 0x10000003u}) {
    std::string other = bytes;
    std::memcpy(&other[kEndpointsAt], &count, sizeof(count));
    EXPECT_FALSE(parse_address(other).ok()) << count;
  }
  std::string more = bytes;
  while (more.size() < bytes.size() + 14 * 18) more += bytes.substr(bytes.size() - 18);
  const uint32_t count = 17;
  std::memcpy(&more[kEndpointsAt], &count, sizeof(count));
  EXPECT_FALSE(parse_address(more).ok());
}

TEST(TcpAddress, AHostNameEndsWithAZeroAndIsPrintable) {
  std::string bytes = encode(address());
  bytes.replace(kHostAt, kHostBytes, std::string(kHostBytes, 'h'));
  EXPECT_FALSE(parse_address(bytes).ok());
  bytes[kHostAt + kHostBytes - 1] = '\0';
  EXPECT_EQ(parse_address(bytes).value().host, std::string(kHostBytes - 1, 'h'));
  bytes[kHostAt] = '\033';
  EXPECT_EQ(parse_address(bytes).value().host.find('\033'), std::string::npos);
}

TEST(TcpAddress, ALongHostNameIsCut) {
  const auto host_of = [](const std::string& name) {
    Address with_name = address();
    with_name.host = name;
    return parse_address(encode(with_name)).value().host;
  };
  const auto stem = [](size_t length, const char* rest) {
    std::string name(length, 'x');
    name += rest;
    return name;
  };
  EXPECT_EQ(host_of(std::string(63, 'x')), std::string(63, 'x'));
  EXPECT_EQ(host_of(std::string(300, 'x')), stem(60, "..."));
  // No letter is cut in two, and what was cut stays as it is.
  EXPECT_EQ(host_of(stem(59, "\u00e4\u00e4\u00e4")), stem(59, "..."));
  EXPECT_EQ(host_of(stem(59, "...")), stem(59, "..."));
}

TEST(TcpKey, ComesBackWholeOrNotAtAll) {
  const RegionKey key{{1, 2, 3}, 7, 0x1234567890, uint64_t{1} << 40};
  const std::string bytes = encode(key);
  EXPECT_LT(bytes.size(), 256u);
  EXPECT_NE(bytes.size(), kShortKeyBytes);
  const RegionKey again = parse_region_key(bytes).take();
  EXPECT_EQ(again.owner, key.owner);
  EXPECT_EQ(again.region, key.region);
  EXPECT_EQ(again.generation, key.generation);
  EXPECT_EQ(again.bytes, key.bytes);
  expect_whole_or_not_at_all(bytes, parse_region_key);
}

TEST(TcpKey, OfAPartComesBackWholeOrNotAtAll) {
  const PartKey key{9, 0x123456789A};
  const std::string bytes = encode(key);
  EXPECT_EQ(bytes.size(), kShortKeyBytes);
  EXPECT_EQ(parse_part_key(bytes).value().region, key.region);
  EXPECT_EQ(parse_part_key(bytes).value().bytes, key.bytes);
  expect_whole_or_not_at_all(bytes, parse_part_key);
}

TEST(TcpKey, ARegionIdIsOneThatExists) {
  for (const RegionId region : {kMaxRegions, kNoRegion}) {
    EXPECT_FALSE(parse_region_key(encode(RegionKey{{}, region, 1, 64})).ok());
    EXPECT_FALSE(parse_part_key(encode(PartKey{region, 64})).ok());
  }
  EXPECT_TRUE(parse_part_key(encode(PartKey{kMaxRegions - 1, 64})).ok());
}

// So that what parses is what was encoded, byte by byte.
TEST(TcpKey, ReservedBytesAreZero) {
  std::string whole = encode(RegionKey{{1}, 7, 1, 64}), part = encode(PartKey{7, 64});
  whole.back() = part.back() = '\1';
  EXPECT_FALSE(parse_region_key(whole).ok());
  EXPECT_FALSE(parse_part_key(part).ok());
}

}  // namespace
}  // namespace rdmacoll::tcp::tcp_address_test
