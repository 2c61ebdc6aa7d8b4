// Our declarations of libibverbs' ABI beside those of the library's own header: sizes, places of
// members, numbers. That header (Debian, Ubuntu: libibverbs-dev) is needed by this test alone.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "csrc/transport/verbs/abi/verbs.h"

#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>

namespace rdmacoll::verbs_abi_test {
namespace {

#define SAME_SIZE(type) EXPECT_EQ(sizeof(rdmacoll::type), sizeof(::type))

#define SAME_MEMBER(type, member)                                        \
  EXPECT_EQ(offsetof(rdmacoll::type, member), offsetof(::type, member)); \
  EXPECT_EQ(sizeof(rdmacoll::type::member), sizeof(::type::member));

#define SAME_NUMBER(name) \
  EXPECT_EQ(static_cast<int64_t>(rdmacoll::name), static_cast<int64_t>(::name))

TEST(VerbsAbi, DeviceAttr) {
  SAME_SIZE(ibv_device_attr);
  SAME_MEMBER(ibv_device_attr, fw_ver);
  SAME_MEMBER(ibv_device_attr, node_guid);
  SAME_MEMBER(ibv_device_attr, sys_image_guid);
  SAME_MEMBER(ibv_device_attr, max_mr_size);
  SAME_MEMBER(ibv_device_attr, page_size_cap);
  SAME_MEMBER(ibv_device_attr, hw_ver);
  SAME_MEMBER(ibv_device_attr, max_qp);
  SAME_MEMBER(ibv_device_attr, max_qp_wr);
  SAME_MEMBER(ibv_device_attr, device_cap_flags);
  SAME_MEMBER(ibv_device_attr, max_sge);
  SAME_MEMBER(ibv_device_attr, max_sge_rd);
  SAME_MEMBER(ibv_device_attr, max_cq);
  SAME_MEMBER(ibv_device_attr, max_cqe);
  SAME_MEMBER(ibv_device_attr, max_mr);
  SAME_MEMBER(ibv_device_attr, max_pd);
  SAME_MEMBER(ibv_device_attr, max_qp_rd_atom);
  SAME_MEMBER(ibv_device_attr, max_res_rd_atom);
  SAME_MEMBER(ibv_device_attr, max_qp_init_rd_atom);
  SAME_MEMBER(ibv_device_attr, max_ah);
  SAME_MEMBER(ibv_device_attr, local_ca_ack_delay);
  SAME_MEMBER(ibv_device_attr, phys_port_cnt);
}

TEST(VerbsAbi, PortAttr) {
  SAME_SIZE(ibv_port_attr);
  SAME_MEMBER(ibv_port_attr, state);
  SAME_MEMBER(ibv_port_attr, max_mtu);
  SAME_MEMBER(ibv_port_attr, active_mtu);
  SAME_MEMBER(ibv_port_attr, gid_tbl_len);
  SAME_MEMBER(ibv_port_attr, port_cap_flags);
  SAME_MEMBER(ibv_port_attr, max_msg_sz);
  SAME_MEMBER(ibv_port_attr, bad_pkey_cntr);
  SAME_MEMBER(ibv_port_attr, qkey_viol_cntr);
  SAME_MEMBER(ibv_port_attr, pkey_tbl_len);
  SAME_MEMBER(ibv_port_attr, lid);
  SAME_MEMBER(ibv_port_attr, sm_lid);
  SAME_MEMBER(ibv_port_attr, lmc);
  SAME_MEMBER(ibv_port_attr, max_vl_num);
  SAME_MEMBER(ibv_port_attr, sm_sl);
  SAME_MEMBER(ibv_port_attr, subnet_timeout);
  SAME_MEMBER(ibv_port_attr, init_type_reply);
  SAME_MEMBER(ibv_port_attr, active_width);
  SAME_MEMBER(ibv_port_attr, active_speed);
  SAME_MEMBER(ibv_port_attr, phys_state);
  SAME_MEMBER(ibv_port_attr, link_layer);
  SAME_MEMBER(ibv_port_attr, flags);
  SAME_MEMBER(ibv_port_attr, port_cap_flags2);
}

TEST(VerbsAbi, Gid) {
  SAME_SIZE(ibv_gid);
  SAME_MEMBER(ibv_gid, raw);
  SAME_MEMBER(ibv_gid, global);
  SAME_MEMBER(ibv_gid, global.subnet_prefix);
  SAME_MEMBER(ibv_gid, global.interface_id);
}

TEST(VerbsAbi, GidEntry) {
  SAME_SIZE(ibv_gid_entry);
  SAME_MEMBER(ibv_gid_entry, gid);
  SAME_MEMBER(ibv_gid_entry, gid_index);
  SAME_MEMBER(ibv_gid_entry, port_num);
  SAME_MEMBER(ibv_gid_entry, gid_type);
  SAME_MEMBER(ibv_gid_entry, ndev_ifindex);
}

TEST(VerbsAbi, AsyncEvent) {
  SAME_SIZE(ibv_async_event);
  SAME_MEMBER(ibv_async_event, element);
  SAME_MEMBER(ibv_async_event, event_type);
  SAME_MEMBER(ibv_async_event, element.cq);
  SAME_MEMBER(ibv_async_event, element.qp);
  SAME_MEMBER(ibv_async_event, element.port_num);
}

TEST(VerbsAbi, GlobalRoute) {
  SAME_SIZE(ibv_global_route);
  SAME_MEMBER(ibv_global_route, dgid);
  SAME_MEMBER(ibv_global_route, flow_label);
  SAME_MEMBER(ibv_global_route, sgid_index);
  SAME_MEMBER(ibv_global_route, hop_limit);
  SAME_MEMBER(ibv_global_route, traffic_class);
}

TEST(VerbsAbi, AhAttr) {
  SAME_SIZE(ibv_ah_attr);
  SAME_MEMBER(ibv_ah_attr, grh);
  SAME_MEMBER(ibv_ah_attr, dlid);
  SAME_MEMBER(ibv_ah_attr, sl);
  SAME_MEMBER(ibv_ah_attr, src_path_bits);
  SAME_MEMBER(ibv_ah_attr, static_rate);
  SAME_MEMBER(ibv_ah_attr, is_global);
  SAME_MEMBER(ibv_ah_attr, port_num);
}

TEST(VerbsAbi, QpCap) {
  SAME_SIZE(ibv_qp_cap);
  SAME_MEMBER(ibv_qp_cap, max_send_wr);
  SAME_MEMBER(ibv_qp_cap, max_recv_wr);
  SAME_MEMBER(ibv_qp_cap, max_send_sge);
  SAME_MEMBER(ibv_qp_cap, max_recv_sge);
  SAME_MEMBER(ibv_qp_cap, max_inline_data);
}

TEST(VerbsAbi, QpInitAttr) {
  SAME_SIZE(ibv_qp_init_attr);
  SAME_MEMBER(ibv_qp_init_attr, qp_context);
  SAME_MEMBER(ibv_qp_init_attr, send_cq);
  SAME_MEMBER(ibv_qp_init_attr, recv_cq);
  SAME_MEMBER(ibv_qp_init_attr, srq);
  SAME_MEMBER(ibv_qp_init_attr, cap);
  SAME_MEMBER(ibv_qp_init_attr, qp_type);
  SAME_MEMBER(ibv_qp_init_attr, sq_sig_all);
}

TEST(VerbsAbi, QpAttr) {
  SAME_SIZE(ibv_qp_attr);
  SAME_MEMBER(ibv_qp_attr, qp_state);
  SAME_MEMBER(ibv_qp_attr, cur_qp_state);
  SAME_MEMBER(ibv_qp_attr, path_mtu);
  SAME_MEMBER(ibv_qp_attr, qkey);
  SAME_MEMBER(ibv_qp_attr, rq_psn);
  SAME_MEMBER(ibv_qp_attr, sq_psn);
  SAME_MEMBER(ibv_qp_attr, dest_qp_num);
  SAME_MEMBER(ibv_qp_attr, qp_access_flags);
  SAME_MEMBER(ibv_qp_attr, cap);
  SAME_MEMBER(ibv_qp_attr, ah_attr);
  SAME_MEMBER(ibv_qp_attr, pkey_index);
  SAME_MEMBER(ibv_qp_attr, max_rd_atomic);
  SAME_MEMBER(ibv_qp_attr, max_dest_rd_atomic);
  SAME_MEMBER(ibv_qp_attr, min_rnr_timer);
  SAME_MEMBER(ibv_qp_attr, port_num);
  SAME_MEMBER(ibv_qp_attr, timeout);
  SAME_MEMBER(ibv_qp_attr, retry_cnt);
  SAME_MEMBER(ibv_qp_attr, rnr_retry);
}

TEST(VerbsAbi, Sge) {
  SAME_SIZE(ibv_sge);
  SAME_MEMBER(ibv_sge, addr);
  SAME_MEMBER(ibv_sge, length);
  SAME_MEMBER(ibv_sge, lkey);
}

TEST(VerbsAbi, SendWr) {
  SAME_SIZE(ibv_send_wr);
  SAME_MEMBER(ibv_send_wr, wr_id);
  SAME_MEMBER(ibv_send_wr, next);
  SAME_MEMBER(ibv_send_wr, sg_list);
  SAME_MEMBER(ibv_send_wr, num_sge);
  SAME_MEMBER(ibv_send_wr, opcode);
  SAME_MEMBER(ibv_send_wr, send_flags);
  SAME_MEMBER(ibv_send_wr, imm_data);
  SAME_MEMBER(ibv_send_wr, wr);
  SAME_MEMBER(ibv_send_wr, wr.rdma.remote_addr);
  SAME_MEMBER(ibv_send_wr, wr.rdma.rkey);
  SAME_MEMBER(ibv_send_wr, wr.ud.ah);
  SAME_MEMBER(ibv_send_wr, wr.ud.remote_qpn);
  SAME_MEMBER(ibv_send_wr, wr.ud.remote_qkey);
}

TEST(VerbsAbi, RecvWr) {
  SAME_SIZE(ibv_recv_wr);
  SAME_MEMBER(ibv_recv_wr, wr_id);
  SAME_MEMBER(ibv_recv_wr, next);
  SAME_MEMBER(ibv_recv_wr, sg_list);
  SAME_MEMBER(ibv_recv_wr, num_sge);
}

TEST(VerbsAbi, Wc) {
  SAME_SIZE(ibv_wc);
  SAME_MEMBER(ibv_wc, wr_id);
  SAME_MEMBER(ibv_wc, status);
  SAME_MEMBER(ibv_wc, opcode);
  SAME_MEMBER(ibv_wc, vendor_err);
  SAME_MEMBER(ibv_wc, byte_len);
  SAME_MEMBER(ibv_wc, imm_data);
  SAME_MEMBER(ibv_wc, qp_num);
  SAME_MEMBER(ibv_wc, src_qp);
  SAME_MEMBER(ibv_wc, wc_flags);
  SAME_MEMBER(ibv_wc, pkey_index);
  SAME_MEMBER(ibv_wc, slid);
  SAME_MEMBER(ibv_wc, sl);
  SAME_MEMBER(ibv_wc, dlid_path_bits);
}

TEST(VerbsAbi, Device) {
  SAME_MEMBER(ibv_device, node_type);
  SAME_MEMBER(ibv_device, transport_type);
  SAME_MEMBER(ibv_device, name);
}

TEST(VerbsAbi, ContextOps) {
  SAME_SIZE(ibv_context_ops);
  SAME_MEMBER(ibv_context_ops, poll_cq);
  SAME_MEMBER(ibv_context_ops, req_notify_cq);
  SAME_MEMBER(ibv_context_ops, post_send);
  SAME_MEMBER(ibv_context_ops, post_recv);
}

TEST(VerbsAbi, Context) {
  SAME_MEMBER(ibv_context, device);
  SAME_MEMBER(ibv_context, ops);
  SAME_MEMBER(ibv_context, cmd_fd);
  SAME_MEMBER(ibv_context, async_fd);
  SAME_MEMBER(ibv_context, num_comp_vectors);
}

TEST(VerbsAbi, Pd) {
  SAME_MEMBER(ibv_pd, context);
  SAME_MEMBER(ibv_pd, handle);
}

TEST(VerbsAbi, Mr) {
  SAME_MEMBER(ibv_mr, context);
  SAME_MEMBER(ibv_mr, pd);
  SAME_MEMBER(ibv_mr, addr);
  SAME_MEMBER(ibv_mr, length);
  SAME_MEMBER(ibv_mr, handle);
  SAME_MEMBER(ibv_mr, lkey);
  SAME_MEMBER(ibv_mr, rkey);
}

TEST(VerbsAbi, CompChannel) {
  SAME_MEMBER(ibv_comp_channel, context);
  SAME_MEMBER(ibv_comp_channel, fd);
  SAME_MEMBER(ibv_comp_channel, refcnt);
}

TEST(VerbsAbi, Cq) {
  SAME_MEMBER(ibv_cq, context);
  SAME_MEMBER(ibv_cq, channel);
  SAME_MEMBER(ibv_cq, cq_context);
  SAME_MEMBER(ibv_cq, handle);
  SAME_MEMBER(ibv_cq, cqe);
}

TEST(VerbsAbi, Qp) {
  SAME_MEMBER(ibv_qp, context);
  SAME_MEMBER(ibv_qp, qp_context);
  SAME_MEMBER(ibv_qp, pd);
  SAME_MEMBER(ibv_qp, send_cq);
  SAME_MEMBER(ibv_qp, recv_cq);
  SAME_MEMBER(ibv_qp, handle);
  SAME_MEMBER(ibv_qp, qp_num);
  SAME_MEMBER(ibv_qp, state);
  SAME_MEMBER(ibv_qp, qp_type);
}

TEST(VerbsAbi, Ah) {
  SAME_MEMBER(ibv_ah, context);
  SAME_MEMBER(ibv_ah, pd);
  SAME_MEMBER(ibv_ah, handle);
}

TEST(VerbsAbi, NumbersOfDevices) {
  SAME_NUMBER(IBV_NODE_UNKNOWN);
  SAME_NUMBER(IBV_NODE_CA);
  SAME_NUMBER(IBV_TRANSPORT_UNKNOWN);
  SAME_NUMBER(IBV_TRANSPORT_IB);
  SAME_NUMBER(IBV_PORT_NOP);
  SAME_NUMBER(IBV_PORT_DOWN);
  SAME_NUMBER(IBV_PORT_INIT);
  SAME_NUMBER(IBV_PORT_ARMED);
  SAME_NUMBER(IBV_PORT_ACTIVE);
  SAME_NUMBER(IBV_PORT_ACTIVE_DEFER);
  SAME_NUMBER(IBV_MTU_256);
  SAME_NUMBER(IBV_MTU_512);
  SAME_NUMBER(IBV_MTU_1024);
  SAME_NUMBER(IBV_MTU_2048);
  SAME_NUMBER(IBV_MTU_4096);
  SAME_NUMBER(IBV_LINK_LAYER_INFINIBAND);
  SAME_NUMBER(IBV_LINK_LAYER_ETHERNET);
  SAME_NUMBER(IBV_GID_TYPE_IB);
  SAME_NUMBER(IBV_GID_TYPE_ROCE_V1);
  SAME_NUMBER(IBV_GID_TYPE_ROCE_V2);
  SAME_NUMBER(IBV_EVENT_CQ_ERR);
  SAME_NUMBER(IBV_EVENT_QP_FATAL);
  SAME_NUMBER(IBV_EVENT_QP_REQ_ERR);
  SAME_NUMBER(IBV_EVENT_QP_ACCESS_ERR);
  SAME_NUMBER(IBV_EVENT_COMM_EST);
  SAME_NUMBER(IBV_EVENT_SQ_DRAINED);
  SAME_NUMBER(IBV_EVENT_PATH_MIG);
  SAME_NUMBER(IBV_EVENT_PATH_MIG_ERR);
  SAME_NUMBER(IBV_EVENT_DEVICE_FATAL);
  SAME_NUMBER(IBV_EVENT_PORT_ACTIVE);
  SAME_NUMBER(IBV_EVENT_PORT_ERR);
  SAME_NUMBER(IBV_EVENT_LID_CHANGE);
  SAME_NUMBER(IBV_EVENT_PKEY_CHANGE);
  SAME_NUMBER(IBV_EVENT_SM_CHANGE);
  SAME_NUMBER(IBV_EVENT_QP_LAST_WQE_REACHED);
  SAME_NUMBER(IBV_EVENT_CLIENT_REREGISTER);
  SAME_NUMBER(IBV_EVENT_GID_CHANGE);
  SAME_NUMBER(IBV_EVENT_WQ_FATAL);
  SAME_NUMBER(IBV_ACCESS_LOCAL_WRITE);
  SAME_NUMBER(IBV_ACCESS_REMOTE_WRITE);
  SAME_NUMBER(IBV_ACCESS_REMOTE_READ);
  SAME_NUMBER(IBV_ACCESS_REMOTE_ATOMIC);
  SAME_NUMBER(IBV_ACCESS_RELAXED_ORDERING);
}

TEST(VerbsAbi, NumbersOfQueuePairs) {
  SAME_NUMBER(IBV_QPT_RC);
  SAME_NUMBER(IBV_QPT_UD);
  SAME_NUMBER(IBV_QPS_RESET);
  SAME_NUMBER(IBV_QPS_INIT);
  SAME_NUMBER(IBV_QPS_RTR);
  SAME_NUMBER(IBV_QPS_RTS);
  SAME_NUMBER(IBV_QPS_ERR);
  SAME_NUMBER(IBV_QP_STATE);
  SAME_NUMBER(IBV_QP_ACCESS_FLAGS);
  SAME_NUMBER(IBV_QP_PKEY_INDEX);
  SAME_NUMBER(IBV_QP_PORT);
  SAME_NUMBER(IBV_QP_QKEY);
  SAME_NUMBER(IBV_QP_AV);
  SAME_NUMBER(IBV_QP_PATH_MTU);
  SAME_NUMBER(IBV_QP_TIMEOUT);
  SAME_NUMBER(IBV_QP_RETRY_CNT);
  SAME_NUMBER(IBV_QP_RNR_RETRY);
  SAME_NUMBER(IBV_QP_RQ_PSN);
  SAME_NUMBER(IBV_QP_MAX_QP_RD_ATOMIC);
  SAME_NUMBER(IBV_QP_MIN_RNR_TIMER);
  SAME_NUMBER(IBV_QP_SQ_PSN);
  SAME_NUMBER(IBV_QP_MAX_DEST_RD_ATOMIC);
  SAME_NUMBER(IBV_QP_DEST_QPN);
  SAME_NUMBER(IBV_WR_RDMA_WRITE);
  SAME_NUMBER(IBV_WR_RDMA_WRITE_WITH_IMM);
  SAME_NUMBER(IBV_WR_SEND);
  SAME_NUMBER(IBV_WR_RDMA_READ);
  SAME_NUMBER(IBV_SEND_FENCE);
  SAME_NUMBER(IBV_SEND_SIGNALED);
  SAME_NUMBER(IBV_SEND_SOLICITED);
  SAME_NUMBER(IBV_SEND_INLINE);
  SAME_NUMBER(IBV_WC_SEND);
  SAME_NUMBER(IBV_WC_RDMA_WRITE);
  SAME_NUMBER(IBV_WC_RDMA_READ);
  SAME_NUMBER(IBV_WC_RECV);
  SAME_NUMBER(IBV_WC_RECV_RDMA_WITH_IMM);
  SAME_NUMBER(IBV_WC_GRH);
  SAME_NUMBER(IBV_WC_WITH_IMM);
}

TEST(VerbsAbi, NumbersOfCompletions) {
  SAME_NUMBER(IBV_WC_SUCCESS);
  SAME_NUMBER(IBV_WC_LOC_LEN_ERR);
  SAME_NUMBER(IBV_WC_LOC_QP_OP_ERR);
  SAME_NUMBER(IBV_WC_LOC_PROT_ERR);
  SAME_NUMBER(IBV_WC_WR_FLUSH_ERR);
  SAME_NUMBER(IBV_WC_BAD_RESP_ERR);
  SAME_NUMBER(IBV_WC_LOC_ACCESS_ERR);
  SAME_NUMBER(IBV_WC_REM_INV_REQ_ERR);
  SAME_NUMBER(IBV_WC_REM_ACCESS_ERR);
  SAME_NUMBER(IBV_WC_REM_OP_ERR);
  SAME_NUMBER(IBV_WC_RETRY_EXC_ERR);
  SAME_NUMBER(IBV_WC_RNR_RETRY_EXC_ERR);
  SAME_NUMBER(IBV_WC_REM_INV_RD_REQ_ERR);
  SAME_NUMBER(IBV_WC_REM_ABORT_ERR);
  SAME_NUMBER(IBV_WC_FATAL_ERR);
  SAME_NUMBER(IBV_WC_RESP_TIMEOUT_ERR);
  SAME_NUMBER(IBV_WC_GENERAL_ERR);
  SAME_NUMBER(IBV_WC_TM_RNDV_INCOMPLETE);
}

}  // namespace
}  // namespace rdmacoll::verbs_abi_test

#else

TEST(VerbsAbi, IsAsTheLibrarysHeaderSays) {
  GTEST_SKIP() << "nothing to compare our declarations of libibverbs with: infiniband/verbs.h is "
                  "missing; install libibverbs-dev (Debian, Ubuntu) or rdma-core-devel (Red Hat)";
}

#endif
