// Interfaces. Floor: transport/tcp/network.
#include "csrc/transport/tcp/network/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string_view>

#include "csrc/base/printable.h"

namespace rdmacoll::tcp {
namespace {

// More would not fit into the address of a process.
constexpr size_t kMostInterfaces = 16;

// Of a filter that takes none, in the error.
constexpr size_t kMostOfFilterBytes = 256;

// Made by container engines and hypervisors on this host, for what runs on it.
constexpr std::array<std::string_view, 6> kForThisHostOnly{"docker", "br-", "virbr",
                                                           "veth",   "cni", "podman"};

// The filter in NCCL's syntax.
class Filter {
 public:
  explicit Filter(std::string_view text) {
    excludes_ = text.starts_with('^');
    if (excludes_) text.remove_prefix(1);
    exact_ = text.starts_with('=');
    if (exact_) text.remove_prefix(1);
    while (!text.empty()) {
      const size_t comma = std::min(text.find(','), text.size());
      if (comma > 0) names_.emplace_back(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  }
  bool takes(const std::string& name) const {
    const bool named = std::any_of(names_.begin(), names_.end(), [&](const std::string& one) {
      return exact_ ? name == one : name.starts_with(one);
    });
    return named != excludes_;
  }

 private:
  bool excludes_;
  bool exact_;
  std::vector<std::string> names_;
};

int64_t speed_of(const std::string& name) {
  std::ifstream file("/sys/class/net/" + name + "/speed");
  int64_t mbit_per_s = 0;
  return file >> mbit_per_s ? std::max<int64_t>(mbit_per_s, 0) : 0;
}

unsigned bits_of(const sockaddr* mask) {
  IpAddress ip;
  if (!read_ip(mask, &ip)) return 0;
  const size_t first = mask->sa_family == AF_INET ? 12 : 0;
  unsigned bits = 0;
  for (size_t i = first; i < ip.bytes.size(); ++i) {
    bits += static_cast<unsigned>(std::popcount(ip.bytes[i]));
  }
  return bits;
}

bool is_for_this_host_only(const Interface& one) {
  return one.ip.is_loopback() ||
         std::any_of(kForThisHostOnly.begin(), kForThisHostOnly.end(),
                     [&](std::string_view prefix) { return one.name.starts_with(prefix); });
}

std::string names_of(const std::vector<Interface>& all) {
  std::string names;
  for (const Interface& one : all) {
    names += (names.empty() ? "" : ", ") + one.name + " (" + text_of(one.ip) + ")";
  }
  return names.empty() ? "none" : names;
}

}  // namespace

Result<std::vector<Interface>> system_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return Status::from_errno("listing network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, ::freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    Interface one;
    if ((at->ifa_flags & IFF_UP) == 0 || !read_ip(at->ifa_addr, &one.ip)) continue;
    one.name = at->ifa_name;
    one.prefix_bits = bits_of(at->ifa_netmask);
    one.mbit_per_s = speed_of(one.name);
    all.push_back(std::move(one));
  }
  return all;
}

Result<std::vector<Interface>> choose_interfaces(std::vector<Interface> all,
                                                 const std::string& filter) {
  std::erase_if(all, [](const Interface& one) { return one.ip.is_link_local(); });
  std::vector<Interface> chosen;
  if (!filter.empty()) {
    const Filter named(filter);
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
                 [&](const Interface& one) { return named.takes(one.name); });
    if (chosen.empty()) {
      return Status(StatusCode::InvalidArgument,
                    "RDMACOLL_SOCKET_IFNAME='" + printable(filter, kMostOfFilterBytes) +
                        "' takes none of the interfaces of this host: " + names_of(all));
    }
  } else {
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
                 [](const Interface& one) { return !is_for_this_host_only(one); });
    if (chosen.empty()) chosen = std::move(all);
    if (chosen.empty()) {
      return Status(StatusCode::Unsupported, "this host has no network interface that is up");
    }
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const Interface& one, const Interface& other) {
    return one.mbit_per_s > other.mbit_per_s;
  });
  chosen.resize(std::min(chosen.size(), kMostInterfaces));
  return chosen;
}

}  // namespace rdmacoll::tcp
