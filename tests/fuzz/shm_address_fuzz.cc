// The address of shared memory: what parses is what was encoded, byte by byte.
#include "csrc/transport/shm/address.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  const ShmAddress address{{1, 2, 3}, 17, 4026531840, "host-17"};
  ShmAddress without_host = address;
  without_host.host.clear();
  return {encode(address), encode(without_host)};
}

void run(const std::string& bytes) {
  Result<ShmAddress> address = parse_shm_address(bytes);
  if (!address.ok()) return check_error(address.status());
  RDMACOLL_CHECK(encode(address.value()) == bytes);
}

}  // namespace rdmacoll::fuzz
