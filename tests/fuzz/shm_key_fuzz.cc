// The key of a region in shared memory: what parses is what was encoded, byte by byte.
#include "csrc/transport/shm/address.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() { return {encode(RegionKey{{1, 2, 3}, 7, 5, 1 << 20})}; }

void run(const std::string& bytes) {
  Result<RegionKey> key = parse_region_key(bytes);
  if (!key.ok()) return check_error(key.status());
  RDMACOLL_CHECK(encode(key.value()) == bytes);
}

}  // namespace rdmacoll::fuzz
