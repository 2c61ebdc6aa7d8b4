// Address and region key: the bytes by which others reach a process and its regions over verbs.
// They come from outside, so parsing trusts nothing. Floor: transport/verbs/connection. Thread:
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "csrc/base/printable.h"
#include "csrc/base/process_id.h"
#include "csrc/base/status.h"
#include "csrc/memory/region.h"
#include "csrc/transport/verbs/device/device.h"

namespace rdmacoll::verbs {

struct Address {
  ProcessId process{};
  uint32_t pid = 0;  // with the host's name, for people
  std::string host;
  PortAddress port;
  uint32_t listener = 0;  // the number of the queue pair that takes handshakes
  uint32_t listener_key = 0;

  std::string who() const { return "pid " + std::to_string(pid) + " on host " + printable(host); }
};

struct RegionKey {
  ProcessId owner{};
  RegionId region = kNoRegion;
  uint64_t generation = 0;  // of the id (transport/lease.h)
  uint64_t address = 0;     // in the owner's address space
  uint64_t bytes = 0;
  uint32_t rkey = 0;
};

// Of a region that peers may only put to; short enough for a signal.
struct PartKey {
  uint64_t address = 0;
  RegionId region = kNoRegion;
  uint32_t rkey = 0;
  uint32_t pages = 0;

  static constexpr uint64_t kPageBytes = 4096;  // such regions are whole pages of this size
};

std::string encode(const Address& address);
std::string encode(const RegionKey& key);
std::string encode(const PartKey& key);

// InvalidArgument when the bytes are not an address (a key) of this version of the transport.
Result<Address> parse_address(const std::string& bytes);
Result<RegionKey> parse_region_key(std::string_view bytes);
// Any bytes of the right number are one.
PartKey parse_part_key(std::string_view bytes);

}  // namespace rdmacoll::verbs
