// VerbsConfig. Floor: transport/verbs/settings.
#include "csrc/transport/verbs/settings/settings.h"

namespace rdmacoll {

Result<VerbsConfig> VerbsConfig::read(const Settings& settings) {
  VerbsConfig verbs;
  settings.read_text("RDMACOLL_HCA", &verbs.hca);
  RDMACOLL_RETURN_IF_ERROR(settings.read_integer("RDMACOLL_GID_INDEX", -1, 255, &verbs.gid_index));
  RDMACOLL_RETURN_IF_ERROR(settings.read_integer("RDMACOLL_IB_PORT", 0, 254, &verbs.port));
  std::string mtu = "0";
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_choice("RDMACOLL_IB_MTU", {"256", "512", "1024", "2048", "4096"}, &mtu));
  verbs.mtu_bytes = std::stoll(mtu);
  RDMACOLL_RETURN_IF_ERROR(settings.read_integer("RDMACOLL_IB_TC", 0, 255, &verbs.traffic_class));
  RDMACOLL_RETURN_IF_ERROR(settings.read_integer("RDMACOLL_IB_SL", 0, 15, &verbs.service_level));
  RDMACOLL_RETURN_IF_ERROR(settings.read_integer("RDMACOLL_IB_TIMEOUT", 1, 31,
                                                 &verbs.timeout_exponent,
                                                 " (0 would wait for ever for a dead peer)"));
  RDMACOLL_RETURN_IF_ERROR(settings.read_integer("RDMACOLL_IB_RETRY_CNT", 1, 6, &verbs.retry_count,
                                                 " (7 would repeat for ever on some devices)"));
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_integer("RDMACOLL_IB_QPS", 1, kMaxQueuePairs, &verbs.queue_pairs));
  return verbs;
}

Status check_verbs_settings(const Settings& settings) {
  return VerbsConfig::read(settings).status();
}

std::string verbs_agreement(const Settings& settings) {
  return std::to_string(VerbsConfig::read(settings).value().queue_pairs);
}

}  // namespace rdmacoll
