// The transports that there are. Floor: engine/connect.
#include "csrc/engine/connect/transport_table.h"

#include <array>
#include <string>
#include <vector>

#include "csrc/transport/shm/transport.h"
#include "csrc/transport/tcp/settings/settings.h"
#include "csrc/transport/tcp/transport.h"
#include "csrc/transport/verbs/open_verbs.h"
#include "csrc/transport/verbs/settings/settings.h"

namespace rdmacoll {
namespace {

template <typename T>
Result<std::unique_ptr<Transport>> open_transport(const Config& config, const Clock& clock,
                                                  const ThisProcess& process) {
  auto opened = T::open(config, clock, process);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Transport>(opened.take());
}

Status check_nothing(const Settings&) { return Status(); }
std::string agree_on_nothing(const Settings&) { return ""; }

}  // namespace

std::span<const TransportRow> transport_table() {
  static const std::array table{
      TransportRow{ShmTransport::kName, false, open_transport<ShmTransport>, check_nothing,
                   agree_on_nothing, nullptr},
      TransportRow{kVerbsName, true, open_verbs, check_verbs_settings, verbs_agreement,
                   explain_verbs},
      TransportRow{TcpTransport::kName, true, open_transport<TcpTransport>, tcp::check_tcp_settings,
                   tcp::tcp_agreement, nullptr}};
  return table;
}

Status check_transport_settings(const Config& config) {
  std::vector<std::string> all{"auto"}, between_hosts;
  for (const TransportRow& row : transport_table()) {
    all.push_back(row.name);
    if (row.spans_hosts) between_hosts.push_back(row.name);
    RDMACOLL_RETURN_IF_ERROR(row.check(config.settings));
  }
  RDMACOLL_RETURN_IF_ERROR(check_choice("RDMACOLL_TRANSPORT", config.transport, all));
  if (config.require.empty()) return Status();
  return check_choice("RDMACOLL_REQUIRE", config.require, between_hosts);
}

Result<std::string> explain_device(const Config& config) {
  for (const TransportRow& row : transport_table()) {
    if (row.explain != nullptr) return row.explain(config);
  }
  return Status(StatusCode::Unsupported, "no transport of this build chooses a device");
}

}  // namespace rdmacoll
