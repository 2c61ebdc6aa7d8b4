// The filter of interfaces (RDMACOLL_SOCKET_IFNAME): what it takes is of the host, in its order. An
// input is the filter.
#include <algorithm>

#include "csrc/transport/tcp/network/interfaces.h"
#include "tests/fuzz/target.h"
#include "tests/unit/tcp/ip_of.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() { return {"eth,ib0", "=eth0,lo", "^docker,lo", "^=eth0", ",,"}; }

void run(const std::string& filter) {
  const std::vector<tcp::Interface> host = {{"eth0", tcp::ip_of("10.0.0.1"), 24, 1'000},
                                            {"eth01", tcp::ip_of("10.0.1.1"), 24, 100},
                                            {"ib0", tcp::ip_of("fd00::1"), 64, 100},
                                            {"lo", tcp::ip_of("127.0.0.1"), 8, 0},
                                            {"docker0", tcp::ip_of("172.17.0.1"), 16, 0}};
  auto chosen = tcp::choose_interfaces(host, filter);
  if (!chosen.ok()) return check_error(chosen.status());
  RDMACOLL_CHECK(!chosen.value().empty());
  auto at = host.begin();
  for (const tcp::Interface& one : chosen.value()) {
    at = std::find_if(at, host.end(), [&](const tcp::Interface& of_host) {
      return of_host.name == one.name && of_host.ip == one.ip;
    });
    RDMACOLL_CHECK(at != host.end());
  }
}

}  // namespace rdmacoll::fuzz
