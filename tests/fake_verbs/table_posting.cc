// The functions of the table: posting work requests. What is wrong with a request shows here only
// as far as a device's driver would look; places in the queues are counted strictly.
#include <cerrno>
#include <cstring>

#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/network.h"
#include "tests/fake_verbs/table_parts.h"

namespace rdmacoll::fake {
namespace {

bool allowed(const QueuePair& queue_pair, ibv_wr_opcode opcode) {
  if (queue_pair.qp_type == IBV_QPT_UD) return opcode == IBV_WR_SEND;
  return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
         opcode == IBV_WR_RDMA_READ;
}

uint64_t total(const ibv_sge* pieces, int count) {
  uint64_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += pieces[i].length;
  return bytes;
}

int check_send(const Device& device, const QueuePair& queue_pair, const ibv_send_wr& request) {
  if (queue_pair.sends_posted - queue_pair.sends_taken >= queue_pair.cap.max_send_wr) return ENOMEM;
  if (request.num_sge < 0 || static_cast<uint32_t>(request.num_sge) > queue_pair.cap.max_send_sge) {
    return EINVAL;
  }
  if (!allowed(queue_pair, request.opcode)) return EINVAL;
  const uint64_t bytes = total(request.sg_list, request.num_sge);
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  if (is_inline && (bytes > queue_pair.cap.max_inline_data || request.opcode == IBV_WR_RDMA_READ)) {
    return EINVAL;
  }
  if (queue_pair.qp_type == IBV_QPT_UD) {
    const Port* port = device.port(queue_pair.attributes.port_num);
    if (request.wr.ud.ah == nullptr || bytes > 128u << port->spec.mtu) return EINVAL;
  }
  return 0;
}

Message message_of(const ibv_send_wr& request, bool datagram, uint64_t position) {
  Message message;
  message.id = request.wr_id;
  message.opcode = request.opcode;
  message.flags = request.send_flags;
  message.immediate = request.imm_data;
  message.bytes = total(request.sg_list, request.num_sge);
  message.local.assign(request.sg_list, request.sg_list + request.num_sge);
  message.position = position;
  if (message.is_inline()) {
    for (const ibv_sge& piece : message.local) {
      const auto* data = reinterpret_cast<const std::byte*>(piece.addr);
      message.inline_data.insert(message.inline_data.end(), data, data + piece.length);
    }
  }
  if (datagram) {
    message.to = static_cast<AddressHandle*>(request.wr.ud.ah);
    message.number = request.wr.ud.remote_qpn;
    message.key = request.wr.ud.remote_qkey;
  } else {
    message.remote_address = request.wr.rdma.remote_addr;
    message.rkey = request.wr.rdma.rkey;
  }
  return message;
}

int post_send(ibv_qp* handle, ibv_send_wr* first, ibv_send_wr** bad) {
  FakeNetwork& network = FakeNetwork::current();
  QueuePair& queue_pair = *static_cast<QueuePair*>(handle);
  require(!queue_pair.destroyed, "a send is posted to a queue pair after its end");
  Device& device = network.registry.device_of(handle->context);
  const std::lock_guard lock(queue_pair.post_mutex);
  const ibv_qp_state state = queue_pair.current;
  auto posting = std::make_unique<Posting>();
  posting->queue_pair = &queue_pair;
  int error = device.faults.send_error;
  if (queue_pair.killed) error = EIO;
  if (state != IBV_QPS_RTS && state != IBV_QPS_ERR) error = EINVAL;
  for (; first != nullptr; first = first->next) {
    if (error == 0) error = check_send(device, queue_pair, *first);
    if (error != 0) break;
    const bool datagram = queue_pair.qp_type == IBV_QPT_UD;
    posting->sends.push_back(message_of(*first, datagram, ++queue_pair.sends_posted));
  }
  if (error != 0) *bad = first;
  if (!posting->sends.empty()) network.wire.submit(std::move(posting));
  return error;
}

int post_recv(ibv_qp* handle, ibv_recv_wr* first, ibv_recv_wr** bad) {
  FakeNetwork& network = FakeNetwork::current();
  QueuePair& queue_pair = *static_cast<QueuePair*>(handle);
  require(!queue_pair.destroyed, "a receive is posted to a queue pair after its end");
  const std::lock_guard lock(queue_pair.post_mutex);
  auto posting = std::make_unique<Posting>();
  posting->queue_pair = &queue_pair;
  int error = queue_pair.killed ? EIO : 0;
  if (queue_pair.current == IBV_QPS_RESET) error = EINVAL;
  for (; first != nullptr; first = first->next) {
    const uint64_t outstanding = queue_pair.receives_posted - queue_pair.receives_taken;
    if (error == 0 && outstanding >= queue_pair.cap.max_recv_wr) error = ENOMEM;
    if (static_cast<uint32_t>(first->num_sge) > queue_pair.cap.max_recv_sge) error = EINVAL;
    if (error != 0) break;
    ++queue_pair.receives_posted;
    posting->receives.push_back({first->wr_id, {first->sg_list, first->sg_list + first->num_sge}});
  }
  if (error != 0) *bad = first;
  if (!posting->receives.empty()) network.wire.submit(std::move(posting));
  return error;
}

}  // namespace

void fill_posting(VerbsTable* table) {
  table->post_send = post_send;
  table->post_recv = post_recv;
}

}  // namespace rdmacoll::fake
