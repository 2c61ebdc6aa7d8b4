// FakePair: bringing two sides up, and down.
#include "tests/unit/fake_verbs/fake_pair.h"

namespace rdmacoll::fake {

void FakeSide::open(const VerbsTable& table, size_t device) {
  int count = 0;
  ibv_device** devices = table.get_device_list(&count);
  context = table.open_device(devices[device % static_cast<size_t>(count)]);
  table.free_device_list(devices);
  pd = table.alloc_pd(context);
  channel = table.create_comp_channel(context);
  queue = table.create_cq(context, 64, nullptr, channel, 0);
  region = table.reg_mr_iova2(pd, memory.data(), memory.size(),
                              reinterpret_cast<uint64_t>(memory.data()), kAll);
}

void FakeSide::make_connection(const VerbsTable& table) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = queue;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {kSends, kReceives, 2, 1, 64};
  queue_pair = table.create_qp(pd, &attributes);
}

int FakeSide::initialise(const VerbsTable& table, unsigned access) const {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = access;
  return table.modify_qp(queue_pair, &attributes,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int FakeSide::receive_from(const VerbsTable& table, const FakeSide& other) const {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = other.queue_pair->qp_num;
  attributes.max_dest_rd_atomic = 4;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.grh.sgid_index = 3;
  attributes.ah_attr.grh.dgid = other.gid(table);
  return table.modify_qp(queue_pair, &attributes,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int FakeSide::start(const VerbsTable& table) const {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.retry_cnt = 3;
  attributes.rnr_retry = 3;
  attributes.max_rd_atomic = 1;
  return table.modify_qp(queue_pair, &attributes,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

void FakeSide::close(const VerbsTable& table) {
  if (queue_pair != nullptr) table.destroy_qp(queue_pair);
  if (region != nullptr) table.dereg_mr(region);
  table.destroy_cq(queue);
  table.destroy_comp_channel(channel);
  table.dealloc_pd(pd);
  table.close_device(context);
}

FakePair::FakePair(uint64_t seed, bool connected, int devices) : network(spec(seed, devices)) {
  for (size_t i = 0; i < 2; ++i) {
    side[i].open(table, i);
    side[i].make_connection(table);
  }
  if (!connected) return;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(side[i].initialise(table), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(side[i].receive_from(table, side[1 - i]), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(side[i].start(table), 0);
}

FakePair::~FakePair() {
  for (FakeSide& one : side) one.close(table);
  EXPECT_EQ(network.leaks(), "");
}

ibv_send_wr FakePair::write(ibv_sge* piece, size_t to, uint64_t id, unsigned flags) const {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = flags;
  request.sg_list = piece;
  request.num_sge = piece != nullptr ? 1 : 0;
  request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(side[1].memory.data() + to);
  request.wr.rdma.rkey = side[1].region->rkey;
  return request;
}

}  // namespace rdmacoll::fake
