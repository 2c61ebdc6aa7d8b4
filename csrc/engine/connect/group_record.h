// GroupRecord: what a rank tells the others of a new group, as bytes over the bootstrap. They come
// from outside, so parsing trusts nothing. Floor: engine/connect. Thread: values.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/status.h"
#include "csrc/memory/region.h"

namespace rdmacoll {

struct GroupRecord {
  uint64_t agreement = 0;  // agreement_hash()
  uint32_t rank = 0;
  uint32_t world = 0;
  std::string address{};  // Transports::local_address()
  std::string key{};      // Transports::region_key() of its block
  RegionId region = kNoRegion;
  uint32_t token = 0;  // LinkNote's; no two groups of a process have the same

  std::string encode() const;
  // InvalidArgument for bytes that are not a record of this version; PeerFailed, with its reason,
  // of a rank that declined.
  static Result<GroupRecord> decode(const std::string& bytes);
};

// What a rank says that cannot take part.
std::string decline_record(const std::string& why);
bool is_declined(const std::string& bytes);

}  // namespace rdmacoll
