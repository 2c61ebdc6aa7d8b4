// A copy past the caches copies what memcpy would, wherever it begins and ends, and nothing else.
#include "csrc/memory/stream_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace rdmacoll {
namespace {

TEST(StreamCopy, EveryBeginningAndEnd) {
  std::vector<std::byte> from(1024), to(1024), expected(1024);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (size_t source = 0; source < 64; source += 3) {
    for (size_t start = 0; start < 64; ++start) {
      for (const size_t bytes : {0u, 1u, 15u, 63u, 64u, 65u, 127u, 128u, 200u, 640u, 899u}) {
        std::fill(to.begin(), to.end(), std::byte{0xEE});
        expected = to;
        std::memcpy(expected.data() + start, from.data() + source, bytes);
        stream_copy(to.data() + start, from.data() + source, bytes);
        ASSERT_EQ(to, expected) << "from " << source << " to " << start << ", " << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace rdmacoll
