// The address of the verbs transport: what parses is encoded to what parses to the same.
#include "csrc/transport/verbs/connection/address.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  verbs::Address address;
  address.process = {1, 2, 3};
  address.pid = 17;
  address.host = "host-17";
  address.port = {{}, 5, IBV_MTU_4096, false};
  address.listener = 42;
  address.listener_key = 0x11111111;
  verbs::Address ethernet = address;
  ethernet.port.is_ethernet = true;
  ethernet.host = std::string(100, 'h');
  return {encode(address), encode(ethernet)};
}

void run(const std::string& bytes) {
  Result<verbs::Address> address = verbs::parse_address(bytes);
  if (!address.ok()) return check_error(address.status());
  const std::string again = encode(address.value());
  Result<verbs::Address> same = verbs::parse_address(again);
  RDMACOLL_CHECK(same.ok() && encode(same.value()) == again);
  RDMACOLL_CHECK(same.value().host == address.value().host);
  RDMACOLL_CHECK(same.value().listener == address.value().listener);
}

}  // namespace rdmacoll::fuzz
