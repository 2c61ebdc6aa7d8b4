// QueuePair: its bring-up, RESET to INIT to RTR to RTS. Floor: transport/verbs/connection.
#include <cerrno>

#include "csrc/transport/verbs/connection/queue_pair.h"
#include "csrc/transport/verbs/device/errors.h"

namespace rdmacoll::verbs {
namespace {

// How long the device waits until it tries again after "receiver not ready": 0.64 ms. The window
// keeps this from ever happening; a foreign sender may meet it.
constexpr uint8_t kMinRnrTimer = 12;
constexpr uint8_t kRnrRetries = 6;  // 7 would be for ever

constexpr uint8_t kHopLimit = 64;

// The most reads that one side may have in flight at the other.
uint8_t reads_in_flight(int offered) { return static_cast<uint8_t>(offered > 16 ? 16 : offered); }

}  // namespace

ibv_ah_attr address_vector(const Device& device, const PortAddress& peer,
                           const VerbsConfig& config) {
  ibv_ah_attr vector{};
  vector.port_num = device.port();
  vector.sl = static_cast<uint8_t>(config.service_level);
  vector.dlid = peer.lid;
  const bool other_subnet =
      peer.gid.global.subnet_prefix != device.address().gid.global.subnet_prefix;
  if (peer.is_ethernet || other_subnet) {
    vector.is_global = 1;
    vector.grh.dgid = peer.gid;
    vector.grh.sgid_index = static_cast<uint8_t>(device.gid_index());
    vector.grh.hop_limit = kHopLimit;
    vector.grh.traffic_class = static_cast<uint8_t>(config.traffic_class);
  }
  return vector;
}

QueuePair::QueuePair(const VerbsTable& table, const Device& device, uint16_t peer, uint8_t stripe)
    : table_(table), device_(device), peer_(peer), stripe_(stripe) {
  for (size_t i = 0; i < receives_.size(); ++i) {
    receives_[i].wr_id = WorkId{true, peer, stripe, 0}.pack();
    receives_[i].next = i + 1 < receives_.size() ? &receives_[i + 1] : nullptr;
  }
}

Result<std::unique_ptr<QueuePair>> QueuePair::create(const VerbsTable& table, const Device& device,
                                                     ibv_cq* completions, uint16_t peer,
                                                     uint8_t stripe) {
  std::unique_ptr<QueuePair> made(new QueuePair(table, device, peer, stripe));
  for (const uint32_t inline_bytes : {kInlineBytesWanted, kSignalBytesMax}) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = completions;
    attributes.recv_cq = completions;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = kSendDepth;
    attributes.cap.max_recv_wr = kReceiveDepth + kReceiveBatch;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = inline_bytes;
    made->queue_pair_ = table.create_qp(device.pd(), &attributes);
    made->inline_bytes_ = attributes.cap.max_inline_data;
    if (made->queue_pair_ != nullptr) break;
  }
  if (made->queue_pair_ == nullptr) {
    return call_error("creating a queue pair of " + std::to_string(kSendDepth) + " sends of " +
                          std::to_string(kSignalBytesMax) + " inline bytes and " +
                          std::to_string(kReceiveDepth) + " receives",
                      errno, device);
  }
  RDMACOLL_RETURN_IF_ERROR(made->to_init());
  for (uint32_t posted = 0; posted < kReceiveDepth + kReceiveBatch; posted += kReceiveBatch) {
    if (const int error = made->post_receive_batch(); error != 0) {
      return call_error("posting receives", error, device);
    }
  }
  return made;
}

QueuePair::~QueuePair() {
  if (queue_pair_ != nullptr) table_.destroy_qp(queue_pair_);
}

Status QueuePair::to_init() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device_.port();
  attributes.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  const int error =
      table_.modify_qp(queue_pair_, &attributes,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  return error == 0 ? Status() : call_error("initialising a queue pair", error, device_);
}

Status QueuePair::connect(const PortAddress& peer, uint32_t peer_number, uint32_t peer_sequence,
                          uint32_t my_sequence, const VerbsConfig& config) {
  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = static_cast<ibv_mtu>(std::min(peer.mtu, device_.address().mtu));
  receive.dest_qp_num = peer_number;
  receive.rq_psn = peer_sequence;
  receive.max_dest_rd_atomic = reads_in_flight(device_.limits().max_qp_rd_atom);
  receive.min_rnr_timer = kMinRnrTimer;
  receive.ah_attr = address_vector(device_, peer, config);
  int error =
      table_.modify_qp(queue_pair_, &receive,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) {
    return call_error(
        "joining a queue pair to the peer's address (is its GID reachable from this "
        "device? see RDMACOLL_GID_INDEX)",
        error, device_);
  }
  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.timeout = static_cast<uint8_t>(config.timeout_exponent);
  send.retry_cnt = static_cast<uint8_t>(config.retry_count);
  send.rnr_retry = kRnrRetries;
  send.sq_psn = my_sequence;
  send.max_rd_atomic = reads_in_flight(device_.limits().max_qp_init_rd_atom);
  error = table_.modify_qp(queue_pair_, &send,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                               IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  return error == 0 ? Status() : call_error("starting a queue pair", error, device_);
}

void QueuePair::give_up() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  table_.modify_qp(queue_pair_, &attributes, IBV_QP_STATE);
}

}  // namespace rdmacoll::verbs
