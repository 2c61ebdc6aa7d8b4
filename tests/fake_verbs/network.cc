// FakeNetwork: what tests do to it.
#include "tests/fake_verbs/network.h"

#include <algorithm>
#include <sstream>

#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/table_parts.h"

namespace rdmacoll::fake {
namespace {

FakeNetwork* the_network = nullptr;

bool is_port_event(ibv_event_type type) {
  return type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR ||
         type == IBV_EVENT_LID_CHANGE || type == IBV_EVENT_GID_CHANGE;
}

void tell_contexts(const Registry& registry, const Device& device, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  if (is_port_event(type)) event.element.port_num = 1;
  for (const auto& [name, context] : registry.contexts) {
    if (context->fake_device == &device) context->events.push(event);
  }
}

}  // namespace

FakeNetwork::FakeNetwork(const NetworkSpec& spec) : registry(spec), wire(registry, spec) {
  require(the_network == nullptr, "there is a network already");
  the_network = this;
}

FakeNetwork::~FakeNetwork() { the_network = nullptr; }

FakeNetwork& FakeNetwork::current() {
  require(the_network != nullptr, "a device is used after the end of its network");
  return *the_network;
}

VerbsTable FakeNetwork::table() {
  VerbsTable table{};
  fill_devices(&table);
  fill_memory(&table);
  fill_completions(&table);
  fill_queue_pairs(&table);
  fill_posting(&table);
  return table;
}

Device& FakeNetwork::named(const std::string& name) {
  Device* device = registry.device(name);
  require(device != nullptr, "no device has that name");
  return *device;
}

void FakeNetwork::kill(const std::string& name) {
  const Wire::Hold hold(wire);
  Device& device = named(name);
  for (const auto& [pointer, context] : registry.contexts) {
    if (context->fake_device == &device) context->killed = true;
  }
  for (const auto& [number, queue_pair] : device.queue_pairs) {
    wire.vanish(*queue_pair);
    queue_pair->killed = true;
  }
  device.queue_pairs.clear();
  const auto is_killed = [&](const auto& entry) {
    return static_cast<Context*>(entry.second->context)->killed;
  };
  std::erase_if(registry.by_lkey, is_killed);
  std::erase_if(registry.by_rkey, is_killed);
}

void FakeNetwork::set_port(const std::string& name, ibv_port_state state) {
  const Wire::Hold hold(wire);
  Device& device = named(name);
  device.port(1)->spec.state = state;
  tell_contexts(registry, device,
                state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void FakeNetwork::report(const std::string& name, ibv_event_type type) {
  const Wire::Hold hold(wire);
  tell_contexts(registry, named(name), type);
}

void FakeNetwork::refuse_registrations(const std::string& device, int error) {
  const Wire::Hold hold(wire);
  named(device).faults.registration_error = error;
}

void FakeNetwork::refuse_queue_pairs(const std::string& device, int error) {
  const Wire::Hold hold(wire);
  named(device).faults.queue_pair_error = error;
}

void FakeNetwork::refuse_sends(const std::string& device, int error) {
  named(device).faults.send_error = error;
}

void FakeNetwork::fail_next_message(const std::string& device, ibv_wc_status status) {
  const Wire::Hold hold(wire);
  named(device).faults.next_status = status;
}

void FakeNetwork::stand_still(const std::string& device) {
  const Wire::Hold hold(wire);
  named(device).faults.stands_still = true;
}

void FakeNetwork::lose_datagrams(double share) {
  const Wire::Hold hold(wire);
  wire.set_datagram_loss(share);
}

WireCounts FakeNetwork::counts() {
  const Wire::Hold hold(wire);
  return wire.counts();
}

std::string FakeNetwork::leaks() {
  const Wire::Hold hold(wire);
  const auto living = [](const auto& objects) {
    return std::count_if(objects.begin(), objects.end(),
                         [](const auto& object) { return !object->destroyed; });
  };
  std::ostringstream text;
  const auto count = [&](auto number, const char* what) {
    if (number > 0) text << number << ' ' << what << "; ";
  };
  count(registry.contexts.size(), "contexts");
  count(registry.domains.size(), "protection domains");
  count(registry.memory.size(), "memory regions");
  count(registry.addresses.size(), "address handles");
  count(registry.channels.size(), "completion channels");
  count(living(registry.completion_queues), "completion queues");
  count(living(registry.queue_pairs), "queue pairs");
  return text.str();
}

}  // namespace rdmacoll::fake
