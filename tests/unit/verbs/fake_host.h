// FakeHost: a host's RDMA devices as far as opening one goes, behind a VerbsTable. It moves no
// data.
#pragma once

#include <arpa/inet.h>

#include <cerrno>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "csrc/transport/verbs/abi/verbs.h"
#include "csrc/transport/verbs/device/table.h"

namespace rdmacoll {

struct FakeDevice : ibv_device {
  std::string called;
  int open_error = 0;
  std::vector<ibv_port_attr> ports;
  std::map<uint32_t, ibv_gid_entry> gids;  // of every port, by index
  int times_opened = 0;

  FakeDevice& with_gid(uint32_t index, const char* address, ibv_gid_type type) {
    ibv_gid_entry& entry = gids[index];
    entry.gid_index = index;
    entry.gid_type = type;
    inet_pton(AF_INET6, address, entry.gid.raw);
    return *this;
  }
};

struct FakeContext : ibv_context {
  FakeDevice* owner = nullptr;
};

// One at a time: what libibverbs' functions take does not name the host.
class FakeHost {
 public:
  FakeHost() { now_ = this; }
  ~FakeHost() { now_ = nullptr; }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  // A device of one active RoCE port of MTU 1024 with an IPv4 address at GID 1.
  FakeDevice& add(const std::string& name) {
    FakeDevice& device = devices_.emplace_back();
    device.called = name;
    device.transport_type = IBV_TRANSPORT_IB;
    add_port(device);
    return device.with_gid(0, "fe80::1", IBV_GID_TYPE_ROCE_V2)
        .with_gid(1, "::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V2);
  }
  static ibv_port_attr& add_port(FakeDevice& device) {
    ibv_port_attr& port = device.ports.emplace_back();
    port.state = IBV_PORT_ACTIVE;
    port.active_mtu = IBV_MTU_1024;
    port.link_layer = IBV_LINK_LAYER_ETHERNET;
    port.gid_tbl_len = 1024;
    return port;
  }

  VerbsTable table();
  // What is open, less what was closed.
  int contexts_open = 0;
  int domains_open = 0;
  int lists_open = 0;
  int fork_error = 0;
  int domain_error = 0;

 private:
  static FakeDevice& device_of(ibv_context* context) {
    return *static_cast<FakeContext*>(context)->owner;
  }

  static inline FakeHost* now_ = nullptr;
  std::list<FakeDevice> devices_;
};

inline VerbsTable FakeHost::table() {
  VerbsTable table{};
  table.fork_init = [] { return now_->fork_error; };
  table.get_device_list = [](int* count) {
    ++now_->lists_open;
    auto** list = new ibv_device* [now_->devices_.size() + 1] {};
    *count = 0;
    for (FakeDevice& device : now_->devices_) list[(*count)++] = &device;
    return list;
  };
  table.free_device_list = [](ibv_device** list) {
    --now_->lists_open;
    delete[] list;
  };
  table.get_device_name = [](ibv_device* device) {
    return static_cast<FakeDevice*>(device)->called.c_str();
  };
  table.open_device = [](ibv_device* device) -> ibv_context* {
    auto* fake = static_cast<FakeDevice*>(device);
    errno = fake->open_error;
    if (errno != 0) return nullptr;
    ++now_->contexts_open;
    ++fake->times_opened;
    auto* context = new FakeContext;
    context->owner = fake;
    return context;
  };
  table.close_device = [](ibv_context* context) {
    --now_->contexts_open;
    delete static_cast<FakeContext*>(context);
    return 0;
  };
  table.query_device = [](ibv_context* context, ibv_device_attr* attributes) {
    attributes->phys_port_cnt = static_cast<uint8_t>(device_of(context).ports.size());
    return 0;
  };
  table.query_port = [](ibv_context* context, uint8_t port, ibv_port_attr* attributes) {
    *attributes = device_of(context).ports.at(port - 1);
    return 0;
  };
  table.query_gid_ex = [](ibv_context* context, uint32_t, uint32_t index, ibv_gid_entry* entry,
                          uint32_t, size_t) {
    const auto& gids = device_of(context).gids;
    const auto found = gids.find(index);
    if (found == gids.end()) return ENODATA;
    *entry = found->second;
    return 0;
  };
  table.alloc_pd = [](ibv_context*) -> ibv_pd* {
    errno = now_->domain_error;
    if (errno != 0) return nullptr;
    ++now_->domains_open;
    return new ibv_pd{};
  };
  table.dealloc_pd = [](ibv_pd* domain) {
    --now_->domains_open;
    delete domain;
    return 0;
  };
  return table;
}

}  // namespace rdmacoll
