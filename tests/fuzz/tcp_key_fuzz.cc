// The keys of regions over tcp, whole ones and those of parts: what parses is what was encoded,
// byte by byte.
#include "csrc/base/limits.h"
#include "csrc/transport/tcp/connection/address.h"
#include "csrc/transport/transport.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  return {encode(tcp::RegionKey{{1, 2, 3}, 7, 5, 1 << 20}), encode(tcp::PartKey{7, 1 << 20})};
}

void run(const std::string& bytes) {
  const auto is_same = [&](auto key) {
    if (!key.ok()) return check_error(key.status());
    RDMACOLL_CHECK(encode(key.value()) == bytes && key.value().region < kMaxRegions);
  };
  is_same(tcp::parse_region_key(bytes));
  is_same(tcp::parse_part_key(bytes));
}

}  // namespace rdmacoll::fuzz
