// ShmAddress and region key as bytes: a tag with the version, then the fields in order.
// Floor: transport/shm.
#include "csrc/transport/shm/address.h"

#include "csrc/base/bytes.h"
#include "csrc/transport/shm/host_id.h"

namespace rdmacoll {
namespace {

constexpr uint64_t kAddressTag = 0x3343'6d68'7300'0001;  // "\1\0shmC3"
constexpr uint64_t kKeyTag = 0x324b'6d68'7300'0001;      // "\1\0shmK2"

std::string string_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string socket_name(const ProcessId& process) { return "rdmacoll-" + hex(process); }

std::string encode(const ShmAddress& address) {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.put(kAddressTag);
  writer.put(address.process);
  writer.put(address.pid);
  writer.put(address.network_namespace);
  writer.put(address.host);
  return string_of(bytes);
}

std::string encode(const RegionKey& key) {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.put(kKeyTag);
  writer.put(key.owner);
  writer.put(key.region);
  writer.put(key.generation);
  writer.put(key.bytes);
  return string_of(bytes);
}

Result<ShmAddress> parse_shm_address(const std::string& bytes) {
  ShmAddress address;
  ByteReader reader(bytes);
  reader.expect(reader.get<uint64_t>() == kAddressTag);
  address.process = reader.get<ProcessId>();
  address.pid = reader.get<uint32_t>();
  address.network_namespace = reader.get<uint64_t>();
  address.host = reader.text(kMaxHostIdBytes);
  if (!reader.is_complete()) {
    return Status(StatusCode::InvalidArgument,
                  "peer address of " + std::to_string(bytes.size()) +
                      " bytes is not one that this version of rdmacoll writes; run the same "
                      "version on all ranks");
  }
  return address;
}

Result<RegionKey> parse_region_key(std::string_view bytes) {
  RegionKey key;
  ByteReader reader(bytes);
  reader.expect(reader.get<uint64_t>() == kKeyTag);
  key.owner = reader.get<ProcessId>();
  key.region = reader.get<RegionId>();
  key.generation = reader.get<uint64_t>();
  key.bytes = reader.get<uint64_t>();
  if (!reader.is_complete()) {
    return Status(StatusCode::InvalidArgument,
                  "region key of " + std::to_string(bytes.size()) +
                      " bytes is not one that this version of rdmacoll made");
  }
  return key;
}

}  // namespace rdmacoll
