// Address and keys: the bytes by which others find a process and its regions. They come from
// outside, so parsing trusts nothing. Floor: transport/tcp/connection. Thread: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/process_id.h"
#include "csrc/base/status.h"
#include "csrc/memory/region.h"
#include "csrc/transport/lease.h"
#include "csrc/transport/tcp/network/ip.h"
#include "csrc/transport/transport.h"

namespace rdmacoll::tcp {

inline constexpr size_t kMaxEndpoints = 16;

struct Address {
  ProcessId process{};
  uint32_t pid = 0;  // for people
  std::string host;  // for people
  std::vector<Endpoint> endpoints;

  std::string who() const;  // "process 17 on host 'h1'"
};

struct RegionKey {
  ProcessId owner{};
  RegionId region = kNoRegion;
  Generation generation = 0;
  uint64_t bytes = 0;
};

// Of a region that takes puts alone; short, for signals carry it.
struct PartKey {
  RegionId region = kNoRegion;
  uint64_t bytes = 0;
};

// Of memory that is lent for a while (placements.h); as short.
struct PlacementKey {
  uint32_t slot = 0;  // of the owner's kPlacements
  uint32_t use = 0;   // which use of the slot it is
  uint64_t bytes = 0;
};
inline constexpr uint32_t kPlacements = 64;  // of one process at a time

std::string encode(const Address& address);
std::string encode(const RegionKey& key);
std::string encode(const PartKey& key);
std::array<char, kShortKeyBytes> encode(const PlacementKey& key);  // without an allocation

// InvalidArgument when the bytes are not what this version of tcp writes.
Result<Address> parse_address(std::string_view bytes);
Result<RegionKey> parse_region_key(std::string_view bytes);
Result<PartKey> parse_part_key(std::string_view bytes);
// nullopt: it is another key.
std::optional<PlacementKey> parse_placement_key(std::string_view bytes);

// For people: "10.0.0.1:4711, [fd00::1]:4712".
std::string text_of(const std::vector<Endpoint>& endpoints);

}  // namespace rdmacoll::tcp
