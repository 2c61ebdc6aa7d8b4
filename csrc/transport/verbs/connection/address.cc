// Address and region key. Floor: transport/verbs/connection. Thread: values.
#include "csrc/transport/verbs/connection/address.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/transport/transport.h"

namespace rdmacoll::verbs {
namespace {

constexpr char kAddressMagic[8] = {'r', 'd', 'm', 'a', 'v', 'c', '0', '1'};
constexpr char kKeyMagic[8] = {'r', 'd', 'm', 'a', 'v', 'k', '0', '2'};

// All fields are naturally aligned and padding is explicit: no byte of it is undefined.
struct AddressWire {
  char magic[8];
  ProcessId process;
  ibv_gid gid;
  uint32_t pid;
  uint32_t listener;
  uint32_t listener_key;
  uint16_t lid;
  uint8_t mtu;
  uint8_t is_ethernet;
  char host[64];  // ends with a zero
};
static_assert(sizeof(AddressWire) == 120);

struct KeyWire {
  char magic[8];
  ProcessId owner;
  uint64_t generation;
  uint64_t address;
  uint64_t bytes;
  uint32_t region;
  uint32_t rkey;
};
static_assert(sizeof(KeyWire) == 56);

struct PartWire {
  uint32_t address[2];  // the low half first
  uint32_t region;
  uint32_t rkey;
  uint32_t pages;
};
static_assert(sizeof(PartWire) == kShortKeyBytes);

template <typename Wire>
std::string bytes_of(const Wire& wire) {
  return std::string(reinterpret_cast<const char*>(&wire), sizeof(wire));
}

template <typename Wire>
bool read(std::string_view bytes, const char (&magic)[8], Wire* wire) {
  if (bytes.size() != sizeof(*wire)) return false;
  std::memcpy(wire, bytes.data(), sizeof(*wire));
  return std::memcmp(wire->magic, magic, sizeof(magic)) == 0;
}

}  // namespace

std::string encode(const Address& address) {
  AddressWire wire{};
  std::memcpy(wire.magic, kAddressMagic, sizeof(kAddressMagic));
  wire.process = address.process;
  wire.gid = address.port.gid;
  wire.pid = address.pid;
  wire.listener = address.listener;
  wire.listener_key = address.listener_key;
  wire.lid = address.port.lid;
  wire.mtu = address.port.mtu;
  wire.is_ethernet = address.port.is_ethernet;
  std::copy_n(address.host.begin(), std::min(address.host.size(), sizeof(wire.host) - 1),
              wire.host);
  return bytes_of(wire);
}

std::string encode(const RegionKey& key) {
  KeyWire wire{};
  std::memcpy(wire.magic, kKeyMagic, sizeof(kKeyMagic));
  wire.owner = key.owner;
  wire.generation = key.generation;
  wire.address = key.address;
  wire.bytes = key.bytes;
  wire.region = key.region;
  wire.rkey = key.rkey;
  return bytes_of(wire);
}

std::string encode(const PartKey& key) {
  return bytes_of(
      PartWire{{static_cast<uint32_t>(key.address), static_cast<uint32_t>(key.address >> 32)},
               key.region,
               key.rkey,
               key.pages});
}

Result<Address> parse_address(const std::string& bytes) {
  AddressWire wire;
  if (!read(bytes, kAddressMagic, &wire) || wire.mtu < IBV_MTU_256 || wire.mtu > IBV_MTU_4096 ||
      wire.is_ethernet > 1 || wire.host[sizeof(wire.host) - 1] != 0) {
    return Status(
        StatusCode::InvalidArgument,
        "these " + std::to_string(bytes.size()) +
            " bytes are not a verbs address of this version; install the same rdmacoll on "
            "all hosts");
  }
  Address address;
  address.process = wire.process;
  address.pid = wire.pid;
  address.host = wire.host;
  address.port = {wire.gid, wire.lid, wire.mtu, wire.is_ethernet == 1};
  address.listener = wire.listener;
  address.listener_key = wire.listener_key;
  return address;
}

PartKey parse_part_key(std::string_view bytes) {
  PartWire wire;
  RDMACOLL_CHECK(bytes.size() == sizeof(wire));
  std::memcpy(&wire, bytes.data(), sizeof(wire));
  return {uint64_t{wire.address[1]} << 32 | wire.address[0], wire.region, wire.rkey, wire.pages};
}

Result<RegionKey> parse_region_key(std::string_view bytes) {
  KeyWire wire;
  if (!read(bytes, kKeyMagic, &wire)) {
    return Status(StatusCode::InvalidArgument,
                  "these " + std::to_string(bytes.size()) +
                      " bytes are not a verbs region key of this version");
  }
  return RegionKey{wire.owner, wire.region, wire.generation, wire.address, wire.bytes, wire.rkey};
}

}  // namespace rdmacoll::verbs
