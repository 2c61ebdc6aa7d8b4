// Copies copy what memcpy would, wherever they begin and end, and nothing else.
#include "csrc/memory/copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace rdmacoll::copy_test {
namespace {

class Copy : public testing::TestWithParam<Stores> {};

TEST_P(Copy, EveryBeginningAndEnd) {
  std::vector<std::byte> from(1024), to(1024), expected(1024);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (size_t source = 0; source < 64; source += 3) {
    for (size_t start = 0; start < 64; ++start) {
      for (const size_t bytes : {0u, 1u, 15u, 63u, 64u, 65u, 127u, 128u, 200u, 640u, 899u}) {
        std::fill(to.begin(), to.end(), std::byte{0xEE});
        expected = to;
        std::memcpy(expected.data() + start, from.data() + source, bytes);
        copy_bytes(to.data() + start, from.data() + source, bytes, GetParam());
        ASSERT_EQ(to, expected) << "from " << source << " to " << start << ", " << bytes;
      }
    }
  }
}

// How far the destination is ahead of the source within a page decides how it is copied.
TEST_P(Copy, EveryDistanceWithinAPage) {
  constexpr size_t kPage = 4096, kBytes = 300;
  std::vector<std::byte> from(kPage + kBytes), to(4 * kPage);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 5 + i / 256);
  const auto into_page = [](const std::byte* at) { return reinterpret_cast<size_t>(at) % kPage; };
  std::byte* same = to.data() + (kPage + into_page(from.data()) - into_page(to.data())) % kPage;
  for (size_t ahead = 0; ahead < kPage; ++ahead) {
    std::memset(same + ahead, 0xEE, kBytes + 1);
    copy_bytes(same + ahead, from.data(), kBytes, GetParam());
    ASSERT_EQ(std::memcmp(same + ahead, from.data(), kBytes), 0) << ahead;
    ASSERT_EQ(same[ahead + kBytes], std::byte{0xEE}) << ahead;
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, Copy, testing::Values(Stores::Cached, Stores::Streamed),
                         [](const testing::TestParamInfo<Stores>& info) {
                           return info.param == Stores::Cached ? "Cached" : "Streamed";
                         });

}  // namespace
}  // namespace rdmacoll::copy_test
