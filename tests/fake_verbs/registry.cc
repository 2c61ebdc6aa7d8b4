// Registry: see its header.
#include "tests/fake_verbs/registry.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rdmacoll::fake {
namespace {

bool empty(const ibv_gid& gid) {
  return gid.global.subnet_prefix == 0 && gid.global.interface_id == 0;
}

uint32_t gid_type(const Port& port, const ibv_ah_attr& address) {
  const ibv_gid_entry* own = address.is_global ? port.gid(address.grh.sgid_index) : nullptr;
  return own != nullptr ? own->gid_type : uint32_t{IBV_GID_TYPE_IB};
}

}  // namespace

const ibv_gid_entry* Port::gid(uint32_t index) const {
  return index < spec.gids.size() && !empty(spec.gids[index].gid) ? &spec.gids[index] : nullptr;
}

Registry::Registry(const NetworkSpec& spec) {
  for (const DeviceSpec& device : spec.devices) {
    auto made = std::make_unique<Device>();
    static_cast<ibv_device&>(*made) = {};
    made->spec = device;
    made->node_type = IBV_NODE_CA;
    made->transport_type = IBV_TRANSPORT_IB;
    std::snprintf(made->name, sizeof made->name, "%s", device.name.c_str());
    for (const PortSpec& port : device.ports) {
      const auto number = static_cast<uint8_t>(made->ports.size() + 1);
      made->ports.push_back(std::make_unique<Port>(Port{made.get(), number, port}));
    }
    devices.push_back(std::move(made));
  }
}

Device* Registry::device(const std::string& name) const {
  for (const auto& device : devices) {
    if (device->spec.name == name) return device.get();
  }
  return nullptr;
}

Port* Registry::behind(const ibv_ah_attr& address, const Port& from) const {
  for (const auto& device : devices) {
    for (const auto& port : device->ports) {
      if (port->spec.ethernet != from.spec.ethernet) continue;
      if (!address.is_global && !port->spec.ethernet && port->spec.lid == address.dlid) {
        return port.get();
      }
      for (size_t i = 0; address.is_global && i < port->spec.gids.size(); ++i) {
        const ibv_gid_entry* gid = port->gid(static_cast<uint32_t>(i));
        if (gid != nullptr && std::memcmp(&gid->gid, &address.grh.dgid, sizeof gid->gid) == 0) {
          return port.get();
        }
      }
    }
  }
  return nullptr;
}

int Registry::check_address(const Device& device, const ibv_ah_attr& address) const {
  const Port* port = device.port(address.port_num);
  if (port == nullptr) return EINVAL;
  if (!address.is_global) return port->spec.ethernet || address.dlid == 0 ? EINVAL : 0;
  if (port->gid(address.grh.sgid_index) == nullptr) return EINVAL;
  // On Ethernet the neighbour is asked for its address.
  return port->spec.ethernet && behind(address, *port) == nullptr ? ETIMEDOUT : 0;
}

QueuePair* Registry::partner(const QueuePair& asking) const {
  if (!asking.receiving()) return nullptr;
  const Port& here = port_of(asking);
  const Port* there = behind(asking.attributes.ah_attr, here);
  if (!here.active() || there == nullptr || !there->active()) return nullptr;
  const auto found = there->device->queue_pairs.find(asking.attributes.dest_qp_num);
  if (found == there->device->queue_pairs.end()) return nullptr;
  QueuePair& other = *found->second;
  const bool joined =
      other.qp_type == IBV_QPT_RC && other.receiving() &&
      other.attributes.dest_qp_num == asking.qp_num &&
      behind(other.attributes.ah_attr, *there) == &here &&
      other.attributes.rq_psn == asking.attributes.sq_psn &&
      other.attributes.path_mtu == asking.attributes.path_mtu &&
      gid_type(here, asking.attributes.ah_attr) == gid_type(*there, other.attributes.ah_attr);
  return joined ? &other : nullptr;
}

MemoryRegion* Registry::local(uint32_t lkey, const ibv_pd* pd, const ibv_sge& piece,
                              bool write) const {
  const auto found = by_lkey.find(lkey);
  if (found == by_lkey.end() || found->second->pd != pd) return nullptr;
  MemoryRegion* region = found->second;
  if (write && (region->access & IBV_ACCESS_LOCAL_WRITE) == 0) return nullptr;
  return region->holds(piece.addr, piece.length) ? region : nullptr;
}

MemoryRegion* Registry::remote(uint32_t rkey, const ibv_pd* pd, uint64_t address, uint64_t bytes,
                               unsigned access) const {
  const auto found = by_rkey.find(rkey);
  if (found == by_rkey.end() || found->second->pd != pd) return nullptr;
  MemoryRegion* region = found->second;
  return (region->access & access) == access && region->holds(address, bytes) ? region : nullptr;
}

}  // namespace rdmacoll::fake
