// The functions of the table: protection domains, registered memory, addresses.
#include <algorithm>
#include <cerrno>

#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/network.h"
#include "tests/fake_verbs/table_parts.h"

namespace rdmacoll::fake {
namespace {

ibv_pd* alloc_pd(ibv_context* context) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  auto made = std::make_unique<ProtectionDomain>();
  static_cast<ibv_pd&>(*made) = {};
  made->context = context;
  ibv_pd* const pd = made.get();
  network.registry.domains[pd] = std::move(made);
  return pd;
}

int dealloc_pd(ibv_pd* pd) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  const auto found = network.registry.domains.find(pd);
  require(found != network.registry.domains.end(), "a protection domain ends twice");
  if (found->second->users > 0) return EBUSY;
  network.registry.domains.erase(found);
  return 0;
}

ibv_mr* reg_mr_iova2(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, unsigned access) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  Registry& registry = network.registry;
  const Device& device = registry.device_of(pd->context);
  const bool remote_only = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
                           (access & IBV_ACCESS_LOCAL_WRITE) == 0;
  errno = device.faults.registration_error;
  if (errno == 0 && (remote_only || bytes == 0)) errno = EINVAL;
  if (errno != 0) return nullptr;
  auto made = std::make_unique<MemoryRegion>();
  static_cast<ibv_mr&>(*made) = {};
  made->context = pd->context;
  made->pd = pd;
  made->addr = address;
  made->length = bytes;
  made->iova = iova;
  made->access = access;
  made->lkey = ++registry.last_key;
  made->rkey = ++registry.last_key;  // not the same, as they are not on some devices
  registry.by_lkey[made->lkey] = made.get();
  registry.by_rkey[made->rkey] = made.get();
  ++static_cast<ProtectionDomain*>(pd)->users;
  ibv_mr* const region = made.get();
  registry.memory[region] = std::move(made);
  return region;
}

int dereg_mr(ibv_mr* region) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  Registry& registry = network.registry;
  require(registry.memory.contains(region), "memory is deregistered twice");
  network.wire.settle();
  registry.by_lkey.erase(region->lkey);
  registry.by_rkey.erase(region->rkey);
  --static_cast<ProtectionDomain*>(region->pd)->users;
  registry.memory.erase(region);
  return 0;
}

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* vector) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  Registry& registry = network.registry;
  errno = registry.check_address(registry.device_of(pd->context), *vector);
  if (errno != 0) return nullptr;
  auto made = std::make_unique<AddressHandle>();
  static_cast<ibv_ah&>(*made) = {};
  made->context = pd->context;
  made->pd = pd;
  made->vector = *vector;
  ++static_cast<ProtectionDomain*>(pd)->users;
  ibv_ah* const address = made.get();
  registry.addresses[address] = std::move(made);
  return address;
}

int destroy_ah(ibv_ah* address) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  const auto found = network.registry.addresses.find(address);
  require(found != network.registry.addresses.end(), "an address handle is destroyed twice");
  require(found->second->messages == 0, "an address handle is destroyed under a datagram");
  --static_cast<ProtectionDomain*>(address->pd)->users;
  network.registry.addresses.erase(found);
  return 0;
}

}  // namespace

void fill_memory(VerbsTable* table) {
  table->alloc_pd = alloc_pd;
  table->dealloc_pd = dealloc_pd;
  table->reg_mr_iova2 = reg_mr_iova2;
  table->dereg_mr = dereg_mr;
  table->create_ah = create_ah;
  table->destroy_ah = destroy_ah;
}

}  // namespace rdmacoll::fake
