// The ABI of libibverbs.so.1, as far as this transport uses it, so that a build needs none of its
// headers: here the objects that only the library makes, each up to the last member that is used.
// The names are those of the library's own <infiniband/verbs.h>, in this namespace; a test compares
// sizes, offsets and numbers with it (tests/unit/verbs/verbs_abi_test.cc).
// Floor: transport/verbs/abi. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/transport/verbs/abi/attributes.h"

namespace rdmacoll {

struct ibv_device {
  void* unused_ops[2];
  ibv_node_type node_type;
  ibv_transport_type transport_type;
  char name[64];
};

// Of the device's driver. The functions that take part in every transfer are no symbols of the
// library: a caller takes them from here.
struct ibv_context_ops {
  void* unused_before_poll_cq[11];
  int (*poll_cq)(ibv_cq* cq, int entries, ibv_wc* completions);
  int (*req_notify_cq)(ibv_cq* cq, int solicited_only);
  void* unused_before_post_send[12];
  int (*post_send)(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad);
  int (*post_recv)(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad);
  void* unused_after_post_recv[5];
};

struct ibv_context {
  ibv_device* device;
  ibv_context_ops ops;
  int cmd_fd;
  int async_fd;
  int num_comp_vectors;
};

struct ibv_pd {
  ibv_context* context;
  uint32_t handle;
};

struct ibv_mr {
  ibv_context* context;
  ibv_pd* pd;
  void* addr;
  size_t length;
  uint32_t handle;
  uint32_t lkey;
  uint32_t rkey;
};

struct ibv_comp_channel {
  ibv_context* context;
  int fd;
  int refcnt;
};

struct ibv_cq {
  ibv_context* context;
  ibv_comp_channel* channel;
  void* cq_context;
  uint32_t handle;
  int cqe;
};

struct ibv_qp {
  ibv_context* context;
  void* qp_context;
  ibv_pd* pd;
  ibv_cq* send_cq;
  ibv_cq* recv_cq;
  void* unused_srq;
  uint32_t handle;
  uint32_t qp_num;
  ibv_qp_state state;
  ibv_qp_type qp_type;
};

struct ibv_ah {
  ibv_context* context;
  ibv_pd* pd;
  uint32_t handle;
};

inline int ibv_poll_cq(ibv_cq* cq, int entries, ibv_wc* completions) {
  return cq->context->ops.poll_cq(cq, entries, completions);
}

inline int ibv_req_notify_cq(ibv_cq* cq, int solicited_only) {
  return cq->context->ops.req_notify_cq(cq, solicited_only);
}

inline int ibv_post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  return qp->context->ops.post_send(qp, first, bad);
}

inline int ibv_post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return qp->context->ops.post_recv(qp, first, bad);
}

}  // namespace rdmacoll
