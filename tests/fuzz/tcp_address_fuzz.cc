// The address of the tcp transport: what parses is encoded to what parses to the same.
#include "csrc/transport/tcp/connection/address.h"
#include "tests/fuzz/target.h"
#include "tests/unit/tcp/ip_of.h"

namespace rdmacoll::fuzz {

constexpr size_t kHostBytes = 64;  // on the wire, with a zero at the end

std::vector<std::string> seeds() {
  tcp::Address address{{1, 2, 3}, 17, "host-17", {{tcp::ip_of("10.0.0.1"), 4711}}};
  const std::string one = encode(address);
  address.host = std::string(100, 'h');
  address.endpoints.resize(tcp::kMaxEndpoints, {tcp::ip_of("fd00::1"), 4712});
  return {one, encode(address)};
}

void run(const std::string& bytes) {
  Result<tcp::Address> address = tcp::parse_address(bytes);
  if (!address.ok()) return check_error(address.status());
  Result<tcp::Address> same = tcp::parse_address(encode(address.value()));
  RDMACOLL_CHECK(same.ok());
  RDMACOLL_CHECK(same.value().process == address.value().process);
  RDMACOLL_CHECK(same.value().endpoints == address.value().endpoints);
  // Spelled out, a name may no longer fit. Then it is cut, and stays as it is from then on.
  const std::string &whole = address.value().host, &host = same.value().host;
  const bool is_cut = whole != host;
  RDMACOLL_CHECK(!is_cut || (whole.size() >= kHostBytes && host.ends_with("...") &&
                             whole.starts_with(host.substr(0, host.size() - 3))));
  Result<tcp::Address> again = tcp::parse_address(encode(same.value()));
  RDMACOLL_CHECK(again.ok() && again.value().host == host);
  check_error(
      Status(StatusCode::Timeout, address.value().who() + tcp::text_of(address.value().endpoints)));
}

}  // namespace rdmacoll::fuzz
