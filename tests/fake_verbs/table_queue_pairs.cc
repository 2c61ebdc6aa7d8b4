// The functions of the table: queue pairs and their states, with the attributes that each change
// needs and allows.
#include <algorithm>
#include <cerrno>

#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/network.h"
#include "tests/fake_verbs/table_parts.h"

namespace rdmacoll::fake {
namespace {

struct Change {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  int needed;
  int allowed;
};

constexpr Change kChanges[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
     0},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
};

bool change_is_allowed(const QueuePair& queue_pair, ibv_qp_state to, int mask) {
  const int others = mask & ~IBV_QP_STATE;
  if ((mask & IBV_QP_STATE) == 0) return false;
  if (to == IBV_QPS_ERR || to == IBV_QPS_RESET) return others == 0;
  return std::any_of(std::begin(kChanges), std::end(kChanges), [&](const Change& change) {
    return change.type == queue_pair.qp_type && change.from == queue_pair.current &&
           change.to == to && (others & change.needed) == change.needed &&
           (others & ~change.needed & ~change.allowed) == 0;
  });
}

// 0, or what a device says to these values.
int check_values(const Registry& registry, const Device& device, const QueuePair& queue_pair,
                 const ibv_qp_attr& next, int mask) {
  const auto has = [&](int attribute) { return (mask & attribute) != 0; };
  const ibv_device_attr& limits = device.spec.limits;
  const bool wrong =
      (has(IBV_QP_PORT) && device.port(next.port_num) == nullptr) ||
      (has(IBV_QP_PKEY_INDEX) && next.pkey_index != 0) ||
      (has(IBV_QP_MAX_DEST_RD_ATOMIC) && next.max_dest_rd_atomic > limits.max_qp_rd_atom) ||
      (has(IBV_QP_MAX_QP_RD_ATOMIC) && next.max_rd_atomic > limits.max_qp_init_rd_atom) ||
      (has(IBV_QP_MIN_RNR_TIMER) && next.min_rnr_timer > 31) ||
      (has(IBV_QP_TIMEOUT) && next.timeout > 31) || (has(IBV_QP_RETRY_CNT) && next.retry_cnt > 7) ||
      (has(IBV_QP_RNR_RETRY) && next.rnr_retry > 7) ||
      (has(IBV_QP_RQ_PSN) && next.rq_psn >> 24 != 0) ||
      (has(IBV_QP_SQ_PSN) && next.sq_psn >> 24 != 0);
  if (wrong) return EINVAL;
  if (!has(IBV_QP_AV)) return 0;
  const Port& port = registry.port_of(queue_pair);
  if (next.ah_attr.port_num != port.number || next.path_mtu > port.spec.mtu ||
      next.path_mtu < IBV_MTU_256) {
    return EINVAL;
  }
  return registry.check_address(device, next.ah_attr);
}

void take_values(QueuePair* queue_pair, const ibv_qp_attr& next, int mask) {
  ibv_qp_attr& own = queue_pair->attributes;
  const auto take = [&](int attribute, auto ibv_qp_attr::* field) {
    if ((mask & attribute) != 0) own.*field = next.*field;
  };
  take(IBV_QP_PORT, &ibv_qp_attr::port_num);
  take(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  take(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  take(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  take(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  take(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  take(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  take(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  take(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  take(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  take(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
}

void forget_completions(const QueuePair& queue_pair) {
  static_cast<CompletionQueue*>(queue_pair.send_cq)->forget(&queue_pair);
  static_cast<CompletionQueue*>(queue_pair.recv_cq)->forget(&queue_pair);
}

void reset(Wire& wire, QueuePair* queue_pair) {
  wire.vanish(*queue_pair);
  forget_completions(*queue_pair);
  const std::lock_guard lock(queue_pair->post_mutex);
  queue_pair->sends_taken = queue_pair->sends_posted;
  queue_pair->receives_taken = queue_pair->receives_posted;
  queue_pair->attributes = {};
}

int modify_qp(ibv_qp* handle, ibv_qp_attr* next, int mask) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  QueuePair& queue_pair = *static_cast<QueuePair*>(handle);
  require(!queue_pair.destroyed, "a queue pair is modified after its end");
  if (queue_pair.killed) return EIO;
  if (!change_is_allowed(queue_pair, next->qp_state, mask)) return EINVAL;
  const Device& device = network.registry.device_of(handle->context);
  const int error = check_values(network.registry, device, queue_pair, *next, mask);
  if (error != 0) return error;
  if (next->qp_state == IBV_QPS_ERR) network.wire.end(queue_pair);
  if (next->qp_state == IBV_QPS_RESET) reset(network.wire, &queue_pair);
  take_values(&queue_pair, *next, mask);
  queue_pair.current = next->qp_state;
  queue_pair.state = next->qp_state;
  return 0;
}

int check_capacities(const DeviceSpec& spec, const ibv_qp_init_attr& wanted) {
  const ibv_qp_cap& cap = wanted.cap;
  const auto wr = static_cast<uint32_t>(spec.limits.max_qp_wr);
  const auto sge = static_cast<uint32_t>(spec.limits.max_sge);
  const bool fits = cap.max_send_wr <= wr && cap.max_recv_wr <= wr && cap.max_send_sge <= sge &&
                    cap.max_recv_sge <= sge && cap.max_inline_data <= spec.max_inline_bytes;
  const bool whole = wanted.send_cq != nullptr && wanted.recv_cq != nullptr &&
                     wanted.srq == nullptr &&
                     (wanted.qp_type == IBV_QPT_RC || wanted.qp_type == IBV_QPT_UD);
  return fits && whole ? 0 : EINVAL;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  Device& device = network.registry.device_of(pd->context);
  errno = device.faults.queue_pair_error;
  if (errno == 0) errno = check_capacities(device.spec, *wanted);
  if (errno != 0) return nullptr;
  auto made = std::make_unique<QueuePair>();
  static_cast<ibv_qp&>(*made) = {};
  made->context = pd->context;
  made->qp_context = wanted->qp_context;
  made->pd = pd;
  made->send_cq = wanted->send_cq;
  made->recv_cq = wanted->recv_cq;
  made->qp_type = wanted->qp_type;
  made->state = IBV_QPS_RESET;
  made->qp_num = ++device.last_number;  // the same numbers on every device
  made->cap = wanted->cap;              // many devices give more
  made->signal_all = wanted->sq_sig_all != 0;
  device.queue_pairs[made->qp_num] = made.get();
  ++static_cast<ProtectionDomain*>(pd)->users;
  ++static_cast<CompletionQueue*>(made->send_cq)->queue_pairs;
  ++static_cast<CompletionQueue*>(made->recv_cq)->queue_pairs;
  network.registry.queue_pairs.push_back(std::move(made));
  return network.registry.queue_pairs.back().get();
}

int destroy_qp(ibv_qp* handle) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  QueuePair& queue_pair = *static_cast<QueuePair*>(handle);
  require(!queue_pair.destroyed, "a queue pair is destroyed twice");
  if (!queue_pair.killed) {
    network.wire.vanish(queue_pair);
    network.registry.device_of(handle->context).queue_pairs.erase(handle->qp_num);
  }
  // Some devices clean the completion queues, some do not.
  if (handle->qp_num % 2 == 0) forget_completions(queue_pair);
  static_cast<Context*>(handle->context)->events.forget([&](const ibv_async_event& event) {
    return event.event_type == IBV_EVENT_QP_ACCESS_ERR && event.element.qp == handle;
  });
  --static_cast<ProtectionDomain*>(handle->pd)->users;
  --static_cast<CompletionQueue*>(handle->send_cq)->queue_pairs;
  --static_cast<CompletionQueue*>(handle->recv_cq)->queue_pairs;
  queue_pair.destroyed = true;
  return 0;
}

}  // namespace

void fill_queue_pairs(VerbsTable* table) {
  table->create_qp = create_qp;
  table->modify_qp = modify_qp;
  table->destroy_qp = destroy_qp;
}

}  // namespace rdmacoll::fake
