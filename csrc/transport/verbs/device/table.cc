// VerbsTable: its functions in the machine's libibverbs.so.1. Nothing else opens the library.
// Floor: transport/verbs/device. Thread: any.
#include "csrc/transport/verbs/device/table.h"

#include <dlfcn.h>

#include <string>

namespace rdmacoll {
namespace {

constexpr const char* kPackages =
    "install libibverbs1 and ibverbs-providers (Debian, Ubuntu) or libibverbs (Red Hat, SUSE)";

class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (*function == nullptr) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;  // the last one that the library does not have
};

void find_all(Symbols& symbols, VerbsTable* table) {
  symbols.find("ibv_fork_init", &table->fork_init);
  symbols.find("ibv_get_device_list", &table->get_device_list);
  symbols.find("ibv_free_device_list", &table->free_device_list);
  symbols.find("ibv_get_device_name", &table->get_device_name);
  symbols.find("ibv_open_device", &table->open_device);
  symbols.find("ibv_close_device", &table->close_device);
  symbols.find("ibv_query_device", &table->query_device);
  symbols.find("ibv_query_port", &table->query_port);
  symbols.find("_ibv_query_gid_ex", &table->query_gid_ex);
  symbols.find("ibv_alloc_pd", &table->alloc_pd);
  symbols.find("ibv_dealloc_pd", &table->dealloc_pd);
  symbols.find("ibv_reg_mr_iova2", &table->reg_mr_iova2);
  symbols.find("ibv_dereg_mr", &table->dereg_mr);
  symbols.find("ibv_create_comp_channel", &table->create_comp_channel);
  symbols.find("ibv_destroy_comp_channel", &table->destroy_comp_channel);
  symbols.find("ibv_create_cq", &table->create_cq);
  symbols.find("ibv_resize_cq", &table->resize_cq);
  symbols.find("ibv_destroy_cq", &table->destroy_cq);
  symbols.find("ibv_get_cq_event", &table->get_cq_event);
  symbols.find("ibv_ack_cq_events", &table->ack_cq_events);
  symbols.find("ibv_create_qp", &table->create_qp);
  symbols.find("ibv_modify_qp", &table->modify_qp);
  symbols.find("ibv_destroy_qp", &table->destroy_qp);
  symbols.find("ibv_create_ah", &table->create_ah);
  symbols.find("ibv_destroy_ah", &table->destroy_ah);
  symbols.find("ibv_get_async_event", &table->get_async_event);
  symbols.find("ibv_ack_async_event", &table->ack_async_event);
}

// The hot four are no symbols: the header calls straight into the device's driver.
void take_inline_functions(VerbsTable* table) {
  table->poll_cq = [](ibv_cq* cq, int entries, ibv_wc* completions) {
    return ibv_poll_cq(cq, entries, completions);
  };
  table->req_notify_cq = [](ibv_cq* cq, int solicited_only) {
    return ibv_req_notify_cq(cq, solicited_only);
  };
  table->post_send = [](ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
    return ibv_post_send(qp, first, bad);
  };
  table->post_recv = [](ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
    return ibv_post_recv(qp, first, bad);
  };
}

}  // namespace

Result<VerbsTable> load_libibverbs(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Status(StatusCode::Unsupported,
                  std::string("no libibverbs (") + dlerror() + "); " + kPackages);
  }
  VerbsTable table{};
  Symbols symbols(library);
  find_all(symbols, &table);
  if (!symbols.missing().empty()) {
    return Status(StatusCode::Unsupported, std::string(file) + " is too old: it has no " +
                                               symbols.missing() +
                                               "; rdma-core 32 or newer is needed: " + kPackages);
  }
  take_inline_functions(&table);
  return table;
}

}  // namespace rdmacoll
