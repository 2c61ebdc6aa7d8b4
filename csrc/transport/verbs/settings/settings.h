// VerbsConfig: what the verbs transport can be told. Builds without the transport check it, too, so
// that their ranks agree with others'. Floor: transport/verbs/settings. Thread: a value.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/settings.h"
#include "csrc/base/status.h"

namespace rdmacoll {

// The names in brackets are NCCL's for the same.
struct VerbsConfig {
  // RDMACOLL_HCA [NCCL_IB_HCA]: devices to use, "mlx5_0,mlx5_1:2" (prefixes, each with its port or
  // any), "=mlx5_1" (exact names), "^mlx5_2" (all but these). Empty: all.
  std::string hca;
  // RDMACOLL_GID_INDEX [NCCL_IB_GID_INDEX]; -1: the first RoCEv2 one that holds an IPv4 address.
  int64_t gid_index = -1;
  // RDMACOLL_IB_PORT; 0: the first active one.
  int64_t port = 0;
  // RDMACOLL_IB_MTU: 256 to 4096 bytes; 0: the port's active one.
  int64_t mtu_bytes = 0;
  // RDMACOLL_IB_TC [NCCL_IB_TC], RDMACOLL_IB_SL [NCCL_IB_SL].
  int64_t traffic_class = 0;
  int64_t service_level = 0;
  // RDMACOLL_IB_TIMEOUT [NCCL_IB_TIMEOUT]: a packet is repeated after 4.096 us x 2^this;
  // RDMACOLL_IB_RETRY_CNT [NCCL_IB_RETRY_CNT]: so often, at most 6. Both together are how long a
  // dead peer goes unnoticed, 1.9 s as they stand.
  int64_t timeout_exponent = 16;
  int64_t retry_count = 6;
  // RDMACOLL_IB_QPS [NCCL_IB_QPS_PER_CONNECTION]: queue pairs per peer; large puts use all. Must be
  // the same on all ranks.
  static constexpr int64_t kMaxQueuePairs = 8;
  int64_t queue_pairs = 1;

  // How long the device tries in vain.
  double no_answer_s() const {
    return 4.096e-6 * static_cast<double>(int64_t{1} << timeout_exponent) *
           static_cast<double>(retry_count + 1);
  }
  // InvalidArgument names the setting, its value and what is allowed.
  static Result<VerbsConfig> read(const Settings& settings);
};

// Ok, or that one of them must have another value.
Status check_verbs_settings(const Settings& settings);
// What of them must be equal on all ranks, of settings that are valid.
std::string verbs_agreement(const Settings& settings);

}  // namespace rdmacoll
