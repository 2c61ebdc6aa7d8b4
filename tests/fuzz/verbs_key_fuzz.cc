// The key of a region over verbs: what parses is what was encoded, byte by byte.
#include "csrc/transport/verbs/connection/address.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  return {encode(verbs::RegionKey{{1, 2, 3}, 7, 5, 0x7F0000000000, 1 << 20, 0x1234})};
}

void run(const std::string& bytes) {
  Result<verbs::RegionKey> key = verbs::parse_region_key(bytes);
  if (!key.ok()) return check_error(key.status());
  RDMACOLL_CHECK(encode(key.value()) == bytes);
}

}  // namespace rdmacoll::fuzz
