// Address and keys as bytes. Floor: transport/tcp/connection.
#include "csrc/transport/tcp/connection/address.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/base/limits.h"
#include "csrc/base/printable.h"
#include "csrc/transport/transport.h"

namespace rdmacoll::tcp {
namespace {

constexpr char kAddressMagic[8] = {'r', 'd', 'm', 'a', 't', 'c', '0', '1'};
constexpr char kKeyMagic[8] = {'r', 'd', 'm', 'a', 't', 'k', '0', '1'};
constexpr uint32_t kPartMagic = 0x31307074;       // "tp01"
constexpr uint32_t kPlacementMagic = 0x31306c74;  // "tl01"
constexpr size_t kHostBytes = 64;                 // ends with a zero
constexpr size_t kCutHostBytes = kHostBytes - 4;  // of a longer name; "..." and the zero follow

// All fields are naturally aligned and padding is explicit: no byte of it is undefined.
struct AddressHead {
  char magic[8];
  ProcessId process;
  uint32_t pid;
  uint32_t endpoints;  // that follow
  char host[kHostBytes];
};
static_assert(sizeof(AddressHead) == 96);

struct EndpointWire {
  IpAddress ip;
  uint16_t port;
};
static_assert(sizeof(EndpointWire) == 18);

struct KeyWire {
  char magic[8];
  ProcessId owner;
  uint64_t generation;
  uint64_t bytes;
  uint32_t region;
  uint32_t reserved;
};
static_assert(sizeof(KeyWire) == 48);

struct PartWire {
  uint32_t magic;
  uint32_t region;
  uint32_t bytes[2];  // the low half first
  uint32_t reserved;
};
static_assert(sizeof(PartWire) == kShortKeyBytes);

struct PlacementWire {
  uint32_t magic;
  uint32_t slot;
  uint32_t use;
  uint32_t bytes[2];  // the low half first
};
static_assert(sizeof(PlacementWire) == kShortKeyBytes);

template <typename Wire>
void append(std::string* bytes, const Wire& wire) {
  bytes->append(reinterpret_cast<const char*>(&wire), sizeof(wire));
}

template <typename Wire>
bool take(std::string_view* bytes, Wire* wire) {
  if (bytes->size() < sizeof(*wire)) return false;
  std::memcpy(wire, bytes->data(), sizeof(*wire));
  bytes->remove_prefix(sizeof(*wire));
  return true;
}

Status not_ours(const char* what, size_t bytes) {
  return Status(StatusCode::InvalidArgument,
                "these " + std::to_string(bytes) + " bytes are not " + what +
                    " of this version's tcp; install the same rdmacoll on all hosts");
}

}  // namespace

std::string Address::who() const {
  return "process " + std::to_string(pid) + " on host '" + host + "'";
}

std::string encode(const Address& address) {
  RDMACOLL_CHECK(address.endpoints.size() <= kMaxEndpoints);
  AddressHead head{};
  std::memcpy(head.magic, kAddressMagic, sizeof(kAddressMagic));
  head.process = address.process;
  head.pid = address.pid;
  head.endpoints = static_cast<uint32_t>(address.endpoints.size());
  std::string host = printable(address.host, kHostBytes - 1);
  if (host.size() >= kHostBytes) host = printable(address.host, kCutHostBytes);
  std::copy(host.begin(), host.end(), head.host);
  std::string bytes;
  append(&bytes, head);
  for (const Endpoint& endpoint : address.endpoints) {
    append(&bytes, EndpointWire{endpoint.ip, endpoint.port});
  }
  return bytes;
}

Result<Address> parse_address(std::string_view bytes) {
  const size_t size = bytes.size();
  AddressHead head;
  const bool good =
      take(&bytes, &head) && std::memcmp(head.magic, kAddressMagic, sizeof(kAddressMagic)) == 0 &&
      head.endpoints >= 1 && head.endpoints <= kMaxEndpoints &&
      bytes.size() == head.endpoints * sizeof(EndpointWire) && head.host[kHostBytes - 1] == 0;
  if (!good) return not_ours("an address", size);
  Address address{head.process, head.pid, printable(head.host, kHostBytes), {}};
  EndpointWire wire;
  while (take(&bytes, &wire)) address.endpoints.push_back({wire.ip, wire.port});
  return address;
}

std::string encode(const RegionKey& key) {
  KeyWire wire{};
  std::memcpy(wire.magic, kKeyMagic, sizeof(kKeyMagic));
  wire.owner = key.owner;
  wire.generation = key.generation;
  wire.bytes = key.bytes;
  wire.region = key.region;
  std::string bytes;
  append(&bytes, wire);
  return bytes;
}

Result<RegionKey> parse_region_key(std::string_view bytes) {
  const size_t size = bytes.size();
  KeyWire wire;
  const bool good = take(&bytes, &wire) && bytes.empty() &&
                    std::memcmp(wire.magic, kKeyMagic, sizeof(kKeyMagic)) == 0 &&
                    wire.region < kMaxRegions && wire.reserved == 0;
  if (!good) return not_ours("the key of a region", size);
  return RegionKey{wire.owner, wire.region, wire.generation, wire.bytes};
}

std::string encode(const PartKey& key) {
  std::string bytes;
  append(&bytes,
         PartWire{kPartMagic,
                  key.region,
                  {static_cast<uint32_t>(key.bytes), static_cast<uint32_t>(key.bytes >> 32)},
                  0});
  return bytes;
}

Result<PartKey> parse_part_key(std::string_view bytes) {
  const size_t size = bytes.size();
  PartWire wire;
  const bool good = take(&bytes, &wire) && bytes.empty() && wire.magic == kPartMagic &&
                    wire.region < kMaxRegions && wire.reserved == 0;
  if (!good) return not_ours("the key of a part", size);
  return PartKey{wire.region, uint64_t{wire.bytes[1]} << 32 | wire.bytes[0]};
}

std::array<char, kShortKeyBytes> encode(const PlacementKey& key) {
  const PlacementWire wire{
      kPlacementMagic,
      key.slot,
      key.use,
      {static_cast<uint32_t>(key.bytes), static_cast<uint32_t>(key.bytes >> 32)}};
  std::array<char, kShortKeyBytes> bytes;
  std::memcpy(bytes.data(), &wire, sizeof(wire));
  return bytes;
}

std::optional<PlacementKey> parse_placement_key(std::string_view bytes) {
  PlacementWire wire;
  const bool good = take(&bytes, &wire) && bytes.empty() && wire.magic == kPlacementMagic &&
                    wire.slot < kPlacements;
  if (!good) return std::nullopt;
  return PlacementKey{wire.slot, wire.use, uint64_t{wire.bytes[1]} << 32 | wire.bytes[0]};
}

std::string text_of(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& endpoint : endpoints) {
    text += (text.empty() ? "" : ", ") + text_of(endpoint);
  }
  return text;
}

}  // namespace rdmacoll::tcp
