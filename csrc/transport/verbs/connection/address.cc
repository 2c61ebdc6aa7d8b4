// Card and region key. Floor: transport/verbs/connection. Thread: values.
#include "csrc/transport/verbs/connection/address.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/transport/transport.h"

namespace rdmacoll::verbs {
namespace {

constexpr char kCardMagic[8] = {'r', 'd', 'm', 'a', 'v', 'c', '0', '1'};
constexpr char kKeyMagic[8] = {'r', 'd', 'm', 'a', 'v', 'k', '0', '2'};

// All fields are naturally aligned and padding is explicit: no byte of it is undefined.
struct CardWire {
  char magic[8];
  ProcessId process;
  ibv_gid gid;
  uint32_t pid;
  uint32_t door;
  uint32_t door_key;
  uint16_t lid;
  uint8_t mtu;
  uint8_t is_ethernet;
  char host[64];  // ends with a zero
};
static_assert(sizeof(CardWire) == 120);

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

std::string encode(const VerbsCard& card) {
  CardWire wire{};
  std::memcpy(wire.magic, kCardMagic, sizeof(kCardMagic));
  wire.process = card.process;
  wire.gid = card.port.gid;
  wire.pid = card.pid;
  wire.door = card.door;
  wire.door_key = card.door_key;
  wire.lid = card.port.lid;
  wire.mtu = card.port.mtu;
  wire.is_ethernet = card.port.is_ethernet;
  std::copy_n(card.host.begin(), std::min(card.host.size(), sizeof(wire.host) - 1), wire.host);
  return bytes_of(wire);
}

std::string encode(const VerbsKey& key) {
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

Result<VerbsCard> parse_verbs_card(const std::string& bytes) {
  CardWire wire;
  if (!read(bytes, kCardMagic, &wire) || wire.mtu < IBV_MTU_256 || wire.mtu > IBV_MTU_4096 ||
      wire.is_ethernet > 1 || wire.host[sizeof(wire.host) - 1] != 0) {
    return Status(StatusCode::InvalidArgument,
                  "these " + std::to_string(bytes.size()) +
                      " bytes are not a verbs card of this version; install the same rdmacoll on "
                      "all hosts");
  }
  VerbsCard card;
  card.process = wire.process;
  card.pid = wire.pid;
  card.host = wire.host;
  card.port = {wire.gid, wire.lid, wire.mtu, wire.is_ethernet == 1};
  card.door = wire.door;
  card.door_key = wire.door_key;
  return card;
}

PartKey parse_part_key(std::string_view bytes) {
  PartWire wire;
  RDMACOLL_CHECK(bytes.size() == sizeof(wire));
  std::memcpy(&wire, bytes.data(), sizeof(wire));
  return {uint64_t{wire.address[1]} << 32 | wire.address[0], wire.region, wire.rkey, wire.pages};
}

Result<VerbsKey> parse_verbs_key(std::string_view bytes) {
  KeyWire wire;
  if (!read(bytes, kKeyMagic, &wire)) {
    return Status(StatusCode::InvalidArgument,
                  "these " + std::to_string(bytes.size()) +
                      " bytes are not a verbs region key of this version");
  }
  return VerbsKey{wire.owner, wire.region, wire.generation, wire.address, wire.bytes, wire.rkey};
}

}  // namespace rdmacoll::verbs
