// The functions of the table: devices, ports, contexts and their events.
#include <cerrno>
#include <cstring>

#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/network.h"
#include "tests/fake_verbs/table_parts.h"

namespace rdmacoll::fake {
namespace {

ibv_device** get_device_list(int* count) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  const auto& devices = network.registry.devices;
  auto** list = new ibv_device*[devices.size() + 1]();
  for (size_t i = 0; i < devices.size(); ++i) list[i] = devices[i].get();
  if (count != nullptr) *count = static_cast<int>(devices.size());
  return list;
}

void free_device_list(ibv_device** list) { delete[] list; }

const char* get_device_name(ibv_device* device) { return device->name; }

ibv_context* open_device(ibv_device* device) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  auto made = std::make_unique<Context>();
  static_cast<ibv_context&>(*made) = {};
  made->device = device;
  made->fake_device = static_cast<Device*>(device);
  made->cmd_fd = -1;
  made->async_fd = made->events.fd();
  made->num_comp_vectors = 1;
  ibv_context* const context = made.get();
  network.registry.contexts[context] = std::move(made);
  return context;
}

template <typename Objects>
bool uses(const Objects& objects, const ibv_context* context) {
  for (const auto& entry : objects) {
    if (entry.second->context == context) return true;
  }
  return false;
}

int close_device(ibv_context* context) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  Registry& registry = network.registry;
  require(registry.contexts.contains(context), "a context is closed that is not open");
  bool busy = uses(registry.domains, context) || uses(registry.channels, context);
  for (const auto& queue : registry.completion_queues) {
    busy |= !queue->destroyed && queue->context == context;
  }
  if (busy) return EBUSY;
  registry.contexts.erase(context);
  return 0;
}

int query_device(ibv_context* context, ibv_device_attr* attributes) {
  *attributes = FakeNetwork::current().registry.device_of(context).spec.limits;
  return 0;
}

int query_port(ibv_context* context, uint8_t number, ibv_port_attr* attributes) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  const Port* port = network.registry.device_of(context).port(number);
  if (port == nullptr) return EINVAL;
  attributes->state = port->spec.state;
  attributes->max_mtu = IBV_MTU_4096;
  attributes->active_mtu = port->spec.mtu;
  attributes->gid_tbl_len = static_cast<int>(port->spec.gids.size());
  attributes->max_msg_sz = 1u << 30;
  attributes->pkey_tbl_len = 1;
  attributes->lid = port->spec.lid;
  attributes->link_layer =
      port->spec.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

int query_gid_ex(ibv_context* context, uint32_t number, uint32_t index, ibv_gid_entry* entry,
                 uint32_t flags, size_t entry_bytes) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  const Port* port = network.registry.device_of(context).port(number);
  if (port == nullptr || index >= port->spec.gids.size() || flags != 0) return EINVAL;
  const ibv_gid_entry* gid = port->gid(index);
  if (gid == nullptr) return ENODATA;
  ibv_gid_entry whole = *gid;
  whole.gid_index = index;
  whole.port_num = number;
  std::memcpy(entry, &whole, std::min(entry_bytes, sizeof whole));
  return 0;
}

int get_async_event(ibv_context* context, ibv_async_event* event) {
  return static_cast<Context*>(context)->events.take(event) ? 0 : -1;
}

}  // namespace

void fill_devices(VerbsTable* table) {
  table->fork_init = [] { return 0; };
  table->get_device_list = get_device_list;
  table->free_device_list = free_device_list;
  table->get_device_name = get_device_name;
  table->open_device = open_device;
  table->close_device = close_device;
  table->query_device = query_device;
  table->query_port = query_port;
  table->query_gid_ex = query_gid_ex;
  table->get_async_event = get_async_event;
  table->ack_async_event = [](ibv_async_event*) {};
}

}  // namespace rdmacoll::fake
