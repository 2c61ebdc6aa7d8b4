// Scene: a victim, which has met an honest process and a rogue, and what must hold when the rogue
// has broken the protocol of tcp. Floor: tests. Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "tests/contract/says.h"
#include "tests/contract/tcp_pair.h"
#include "tests/contract/tcp_rogue.h"

namespace rdmacoll {

inline constexpr RegionId kLines = 0;  // of the victim: put, get and signal
inline constexpr RegionId kPart = 1;   // puts alone
inline constexpr uint64_t kPartBytes = 4096;

template <typename T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A victim, which has met an honest process and the rogue.
struct Scene {
  explicit Scene(int64_t streams = 1) : options{.streams = streams}, pair(options) {
    const auto memory = std::make_shared<SharedSegment>(SharedSegment::create(kPartBytes).take());
    part = memory->data();
    EXPECT_TRUE(
        victim().register_region(kPart, {memory, 0, kPartBytes, Access::PutOnly}).status().ok());
    rogue = std::make_unique<TcpRogue>(victim(), options);
    std::memset(pair.region[0].base, 0x55, pair.region[0].bytes);
    std::memset(part, 0x55, kPartBytes);
  }
  TcpTransport& victim() { return pair.at(0); }
  uint64_t bytes() const { return pair.region[0].bytes; }
  tcp::FrameHead head(tcp::FrameKind kind, RegionId region = kLines, uint64_t offset = 0) const {
    const auto key = tcp::parse_region_key(pair.region[0].key).take();
    return {.kind = kind,
            .generation = static_cast<uint16_t>(key.generation),
            .region = region,
            .offset = offset};
  }
  bool is_untouched() const {
    const auto all = [](const std::byte* at, uint64_t count) {
      return std::all_of(at, at + count, [](std::byte one) { return one == std::byte{0x55}; });
    };
    return all(pair.region[0].base, bytes()) && all(part, kPartBytes);
  }
  void expect_rogue_alone_is_lost(const std::string& words) {
    EXPECT_TRUE(pair.until([&] { return !rogue->status().ok(); }, 5'000));
    EXPECT_EQ(rogue->status().code(), StatusCode::PeerFailed);
    EXPECT_TRUE(says(rogue->status(), "'rogue'")) << rogue->status().message();
    EXPECT_TRUE(says(rogue->status(), words)) << rogue->status().message();
    EXPECT_TRUE(is_untouched());
    expect_honest_ones_go_on();
  }
  void expect_honest_ones_go_on() {
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(pair.status(i).ok()) << pair.status(i).message();
      std::memset(pair.region[i].base, 0, kLineBytes);
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(pair.until([&] { return pair.signal(i, 1) == Posted::Done; }));
    }
    EXPECT_TRUE(pair.until([&] { return pair.counter(0) == 1 && pair.counter(1) == 1; }));
  }

  const TcpOptions options;
  TcpPair pair;
  std::byte* part = nullptr;
  std::unique_ptr<TcpRogue> rogue;
};

inline constexpr const char* kBroke = "broke the protocol of tcp";

inline std::string signal_body(uint64_t counter = 7) {
  tcp::SignalBody body{};
  body.counter = counter;
  return bytes_of(body).substr(0, tcp::kSignalHeadBytes);
}

}  // namespace rdmacoll
