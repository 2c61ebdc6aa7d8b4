// VerbsTable: the functions of libibverbs that the transport calls, found at run time, so that one
// build runs on machines without the library, and so that tests can put an emulated device in its
// place. Nothing else in the tree calls libibverbs.
// Floor: transport/verbs/device. Thread: a value; its functions are as thread-safe as libibverbs'.
#pragma once

#include "csrc/base/status.h"
#include "csrc/transport/verbs/abi/verbs.h"

namespace rdmacoll {

// Each as its namesake in <infiniband/verbs.h>, without that header's inline wrappers.
struct VerbsTable {
  // Before the first call of another; again is free.
  int (*fork_init)();
  ibv_device** (*get_device_list)(int* count);
  void (*free_device_list)(ibv_device** list);
  const char* (*get_device_name)(ibv_device* device);
  ibv_context* (*open_device)(ibv_device* device);
  int (*close_device)(ibv_context* context);
  int (*query_device)(ibv_context* context, ibv_device_attr* attributes);
  // Old devices fill in a part only: the attributes come zeroed.
  int (*query_port)(ibv_context* context, uint8_t port, ibv_port_attr* attributes);
  int (*query_gid_ex)(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry,
                      uint32_t flags, size_t entry_bytes);

  ibv_pd* (*alloc_pd)(ibv_context* context);
  int (*dealloc_pd)(ibv_pd* pd);
  // Optional access flags that the kernel does not know are left out.
  ibv_mr* (*reg_mr_iova2)(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, unsigned access);
  int (*dereg_mr)(ibv_mr* mr);

  ibv_comp_channel* (*create_comp_channel)(ibv_context* context);
  int (*destroy_comp_channel)(ibv_comp_channel* channel);
  ibv_cq* (*create_cq)(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                       int vector);
  int (*resize_cq)(ibv_cq* cq, int entries);
  int (*destroy_cq)(ibv_cq* cq);
  int (*get_cq_event)(ibv_comp_channel* channel, ibv_cq** cq, void** user);
  void (*ack_cq_events)(ibv_cq* cq, unsigned count);
  int (*poll_cq)(ibv_cq* cq, int entries, ibv_wc* completions);
  int (*req_notify_cq)(ibv_cq* cq, int solicited_only);

  ibv_qp* (*create_qp)(ibv_pd* pd, ibv_qp_init_attr* attributes);
  int (*modify_qp)(ibv_qp* qp, ibv_qp_attr* attributes, int mask);
  int (*destroy_qp)(ibv_qp* qp);
  int (*post_send)(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad);
  int (*post_recv)(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad);

  ibv_ah* (*create_ah)(ibv_pd* pd, ibv_ah_attr* attributes);
  int (*destroy_ah)(ibv_ah* ah);

  int (*get_async_event)(ibv_context* context, ibv_async_event* event);
  void (*ack_async_event)(ibv_async_event* event);
};

// The machine's library, never unloaded. Unsupported names the package to install when it is not
// there or too old.
Result<VerbsTable> load_libibverbs(const char* file = "libibverbs.so.1");

}  // namespace rdmacoll
