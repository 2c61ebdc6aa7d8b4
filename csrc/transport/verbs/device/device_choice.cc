// Choice of device, port and GID. Floor: transport/verbs/device.
#include "csrc/transport/verbs/device/device_choice.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace rdmacoll::verbs {
namespace {

constexpr int kPortMax = 254;

Status bad_list(const std::string& text, const std::string& what) {
  return Status(StatusCode::InvalidArgument,
                "RDMACOLL_HCA='" + text + "' is not valid: " + what +
                    "; name devices as in \"mlx5_0,mlx5_1:2\", \"=mlx5_1\" or \"^mlx5_2\"");
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// 0 when the text is no port.
int parse_port(const std::string& text) {
  char* end = nullptr;
  const long port = std::strtol(text.c_str(), &end, 10);
  return *end == '\0' && port >= 1 && port <= kPortMax ? static_cast<int>(port) : 0;
}

std::string name_of(const Candidate& candidate) {
  return candidate.port == 0 ? candidate.device
                             : candidate.device + " port " + std::to_string(candidate.port);
}

bool is_ipv4(const ibv_gid& gid) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(std::begin(kMapped), std::end(kMapped), gid.raw);
}

bool is_link_local(const ibv_gid& gid) {
  if (is_ipv4(gid)) return gid.raw[12] == 169 && gid.raw[13] == 254;
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

// ShrinkResult is better.
int preference(const ibv_gid_entry& entry) {
  const int version = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 0 : 3;
  return version + (is_link_local(entry.gid) ? 2 : is_ipv4(entry.gid) ? 0 : 1);
}

std::string list_of(const std::vector<ibv_gid_entry>& gids) {
  std::string list;
  for (const ibv_gid_entry& entry : gids) {
    list +=
        (list.empty() ? "" : ", ") + std::to_string(entry.gid_index) + " = " + text_of(entry.gid);
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V1) list += " (RoCE v1)";
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) list += " (RoCE v2)";
  }
  return list.empty() ? "none" : list;
}

}  // namespace

Result<HcaList> HcaList::parse(const std::string& text) {
  HcaList list;
  std::string names = text;
  if (names.starts_with('^')) {
    list.excludes_ = true;
    names.erase(0, 1);
  }
  if (names.starts_with('=')) {
    list.whole_names_ = true;
    names.erase(0, 1);
  }
  if (text.empty()) return list;
  for (const std::string& item : split(names, ',')) {
    const std::vector<std::string> parts = split(item, ':');
    Entry entry{parts[0], parts.size() == 2 ? parse_port(parts[1]) : 0};
    if (entry.name.empty()) return bad_list(text, "a name is empty");
    if (parts.size() > 2 || (parts.size() == 2 && entry.port == 0)) {
      return bad_list(
          text, "the port of '" + item + "' is not a number from 1 to " + std::to_string(kPortMax));
    }
    list.entries_.push_back(std::move(entry));
  }
  return list;
}

bool HcaList::names(const Entry& entry, const std::string& device) const {
  return whole_names_ ? device == entry.name : device.starts_with(entry.name);
}

bool HcaList::admits(const std::string& device, int port) const {
  if (entries_.empty()) return true;
  return excludes_ != std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
           if (!names(entry, device)) return false;
           return entry.port == 0 || entry.port == port || (port == 0 && !excludes_);
         });
}

std::string port_problem(const ibv_port_attr& port) {
  const bool is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  switch (port.state) {
    case IBV_PORT_ACTIVE:
      return "";
    case IBV_PORT_DOWN:
      return is_ethernet ? "is DOWN: bring its network interface up (ip link set <interface> up), "
                           "or check the cable"
                         : "is DOWN: check the cable and the switch";
    case IBV_PORT_INIT:
      return "is in state INIT: no subnet manager has set it up; start opensm, or check the "
             "switch's";
    case IBV_PORT_ARMED:
      return "is in state ARMED: the subnet manager has not activated it yet";
    default:
      return "is in state " + std::to_string(port.state) + ", not ACTIVE";
  }
}

Result<size_t> choose_candidate(const std::vector<Candidate>& candidates, int64_t local_rank) {
  std::vector<size_t> nearest;
  int distance = std::numeric_limits<int>::max();
  std::string problems;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (!candidate.problem.empty()) {
      problems += (problems.empty() ? "" : "; ") + name_of(candidate) + " " + candidate.problem;
      continue;
    }
    if (candidate.distance < distance) nearest.clear();
    distance = std::min(distance, candidate.distance);
    if (candidate.distance == distance) nearest.push_back(i);
  }
  if (nearest.empty()) {
    return Status(StatusCode::Unsupported, "no RDMA device of this host can be used: " + problems);
  }
  return nearest[static_cast<size_t>(local_rank) % nearest.size()];
}

std::string explain_choice(const std::vector<Candidate>& candidates, size_t chosen) {
  size_t nearest = 0;
  size_t usable = 0;
  std::string others;
  for (const Candidate& candidate : candidates) {
    const bool is_near = candidate.distance == candidates[chosen].distance;
    if (candidate.problem.empty()) {
      ++usable;
      nearest += is_near ? 1 : 0;
      if (!is_near) others += "; " + name_of(candidate) + " is farther from this process's cores";
    } else {
      others += "; " + name_of(candidate) + " " + candidate.problem;
    }
  }
  if (usable == 1) return "the only usable port" + others;
  if (nearest == 1) return "the nearest port" + others;
  return "by LOCAL_RANK out of the " + std::to_string(nearest) + " nearest ports" + others;
}

Result<ibv_gid_entry> choose_gid(const std::vector<ibv_gid_entry>& gids, bool is_ethernet,
                                 int64_t wanted, const std::string& port) {
  const ibv_gid_entry* best = nullptr;
  for (const ibv_gid_entry& entry : gids) {
    if (wanted >= 0 && entry.gid_index != wanted) continue;
    const bool better = best == nullptr || (is_ethernet && preference(entry) < preference(*best));
    if (better) best = &entry;
  }
  if (best != nullptr) return *best;
  if (wanted >= 0) {
    return Status(StatusCode::InvalidArgument,
                  "RDMACOLL_GID_INDEX=" + std::to_string(wanted) + " does not exist at " + port +
                      "; its GIDs are: " + list_of(gids) + "; choose one of them or unset it");
  }
  return Status(StatusCode::Unsupported,
                port + " has no GID: give its network interface an address (ip addr add)");
}

std::string text_of(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN];
  const bool ipv4 = is_ipv4(gid);
  inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid.raw + 12 : gid.raw, text, sizeof(text));
  return text;
}

}  // namespace rdmacoll::verbs
