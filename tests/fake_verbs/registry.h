// Registry: the devices of the network, what was opened and made on them, and who is behind an
// address. Under the network's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/verbs/abi/verbs.h"
#include "tests/fake_verbs/completion_queue.h"
#include "tests/fake_verbs/queue_pair.h"
#include "tests/fake_verbs/specs.h"

namespace rdmacoll::fake {

struct Device;

struct Port {
  Device* device;
  uint8_t number;
  PortSpec spec;

  bool active() const { return spec.state == IBV_PORT_ACTIVE; }
  // nullptr where the table has none.
  const ibv_gid_entry* gid(uint32_t index) const;
};

// What tests make go wrong, on one device.
struct Faults {
  int registration_error = 0;  // errno of all registrations, while it is set
  int queue_pair_error = 0;    // of creating queue pairs
  std::atomic<int> send_error{0};
  ibv_wc_status next_status = IBV_WC_SUCCESS;  // of the next message on a connection
  bool stands_still = false;                   // it begins no message
};

struct Device : ibv_device {
  DeviceSpec spec;
  std::vector<std::unique_ptr<Port>> ports;
  std::map<uint32_t, QueuePair*> queue_pairs;  // those that live, by number
  uint32_t last_number = 0x10;
  Faults faults;

  Port* port(uint32_t number) const {
    return number >= 1 && number <= ports.size() ? ports[number - 1].get() : nullptr;
  }
};

struct Context : ibv_context {
  Device* fake_device = nullptr;
  EventQueue<ibv_async_event> events;
  bool killed = false;
};

struct ProtectionDomain : ibv_pd {
  int users = 0;
};

struct MemoryRegion : ibv_mr {
  uint64_t iova = 0;
  unsigned access = 0;

  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= iova && address - iova <= length && bytes <= length - (address - iova);
  }
  std::byte* at(uint64_t address) const { return static_cast<std::byte*>(addr) + (address - iova); }
};

struct AddressHandle : ibv_ah {
  ibv_ah_attr vector{};
  int messages = 0;  // that are still to be sent
};

struct Registry {
  explicit Registry(const NetworkSpec& spec);

  Device* device(const std::string& name) const;
  Device& device_of(const ibv_context* context) const {
    return *static_cast<const Context*>(context)->fake_device;
  }
  Port& port_of(const QueuePair& queue_pair) const {
    return *device_of(queue_pair.context).port(queue_pair.attributes.port_num);
  }
  // The port behind an address, seen from another; nullptr: nobody there.
  Port* behind(const ibv_ah_attr& address, const Port& from) const;
  // 0, or what a device says to an address to send to.
  int check_address(const Device& device, const ibv_ah_attr& address) const;
  // The queue pair that a connected one sends to; nullptr while nobody answers.
  QueuePair* partner(const QueuePair& queue_pair) const;
  // nullptr when the key does not allow that.
  MemoryRegion* local(uint32_t lkey, const ibv_pd* pd, const ibv_sge& piece, bool write) const;
  MemoryRegion* remote(uint32_t rkey, const ibv_pd* pd, uint64_t address, uint64_t bytes,
                       unsigned access) const;

  std::vector<std::unique_ptr<Device>> devices;
  std::map<ibv_context*, std::unique_ptr<Context>> contexts;
  std::map<ibv_pd*, std::unique_ptr<ProtectionDomain>> domains;
  std::map<ibv_mr*, std::unique_ptr<MemoryRegion>> memory;
  std::map<uint32_t, MemoryRegion*> by_lkey;
  std::map<uint32_t, MemoryRegion*> by_rkey;
  std::map<ibv_ah*, std::unique_ptr<AddressHandle>> addresses;
  std::map<ibv_comp_channel*, std::unique_ptr<CompletionChannel>> channels;
  // These stay until the network ends, so that their use after their end is found.
  std::vector<std::unique_ptr<CompletionQueue>> completion_queues;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs;
  uint32_t last_key = 0x1000;
};

}  // namespace rdmacoll::fake
