// TcpConfig. Floor: transport/tcp/settings.
#include "csrc/transport/tcp/settings/settings.h"

#include <charconv>
#include <string_view>

namespace rdmacoll::tcp {
namespace {

bool read_port(std::string_view text, uint16_t* port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *port);
  return error == std::errc() && end == text.data() + text.size() && *port > 0;
}

Status read_ports(const Settings& settings, PortRange* range) {
  std::string text;
  settings.read_text("RDMACOLL_TCP_PORTS", &text);
  if (text.empty()) return Status();
  const std::string_view ports = text;
  const size_t dash = ports.find('-');
  const bool good = read_port(ports.substr(0, dash), &range->first) &&
                    read_port(dash == ports.npos ? ports : ports.substr(dash + 1), &range->last) &&
                    range->first <= range->last;
  if (good) return Status();
  return bad_value("RDMACOLL_TCP_PORTS", text, "a port from 1 to 65535, or a range FIRST-LAST");
}

}  // namespace

Result<TcpConfig> TcpConfig::read(const Settings& settings) {
  TcpConfig tcp;
  settings.read_text("RDMACOLL_SOCKET_IFNAME", &tcp.interfaces);
  RDMACOLL_RETURN_IF_ERROR(read_ports(settings, &tcp.ports));
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_integer("RDMACOLL_TCP_STREAMS", 1, kMaxStreams, &tcp.streams));
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_integer("RDMACOLL_TCP_TIMEOUT_MS", kTimeoutMinMs, 3'600'000, &tcp.timeout_ms));
  return tcp;
}

Status check_tcp_settings(const Settings& settings) { return TcpConfig::read(settings).status(); }

std::string tcp_agreement(const Settings& settings) {
  return std::to_string(TcpConfig::read(settings).value().streams);
}

}  // namespace rdmacoll::tcp
