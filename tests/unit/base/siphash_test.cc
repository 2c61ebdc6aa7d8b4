// SipHash: the vectors of its paper's reference code, and that pieces count by their order.
#include "csrc/base/siphash.h"

#include <gtest/gtest.h>

#include <array>

namespace rdmacoll::siphash_test {
namespace {

// The key 00 01 .. 0f, and the message 00 01 02 .. of so many bytes.
constexpr SipKey kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

std::array<unsigned char, 64> counting() {
  std::array<unsigned char, 64> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i);
  return bytes;
}

// Appendix A of the paper is the one of 15 bytes; the others are of its authors' vectors_sip64.
TEST(SipHash, TheVectorsOfThePaper) {
  const std::pair<size_t, uint64_t> vectors[] = {
      {0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd},  {7, 0xab0200f58b01d137},
      {8, 0x93f5f5799a932462},  {15, 0xa129ca6149be45e5}, {16, 0x3f2acc7f57c29bdb},
      {63, 0x958a324ceb064572},
  };
  const auto message = counting();
  for (const auto& [bytes, tag] : vectors) {
    EXPECT_EQ(SipHash(kKey).finish(message.data(), bytes), tag) << bytes;
  }
}

TEST(SipHash, WordsAreEightBytesOfTheMessage) {
  SipHash hash(kKey);
  hash.add(0x0706050403020100);
  EXPECT_EQ(hash.finish(counting().data() + 8, 7), 0xa129ca6149be45e5);
}

TEST(SipHash, EveryBitOfKeyMessageAndLengthCounts) {
  const auto message = counting();
  const uint64_t right = SipHash(kKey).finish(message.data(), 20);
  EXPECT_NE(SipHash({kKey.low ^ 1, kKey.high}).finish(message.data(), 20), right);
  EXPECT_NE(SipHash({kKey.low, kKey.high ^ 1}).finish(message.data(), 20), right);
  EXPECT_NE(SipHash(kKey).finish(message.data(), 21), right);
  for (size_t bit = 0; bit < 20 * 8; ++bit) {
    auto changed = message;
    changed[bit / 8] = static_cast<unsigned char>(changed[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(SipHash(kKey).finish(changed.data(), 20), right) << bit;
  }
}

}  // namespace
}  // namespace rdmacoll::siphash_test
