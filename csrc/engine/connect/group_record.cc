// GroupRecord as bytes: a fixed part, then address and key. Floor: engine/connect.
#include "csrc/engine/connect/group_record.h"

#include <cstring>
#include <string_view>

#include "csrc/base/printable.h"
#include "csrc/engine/connect/tagged_fields.h"

namespace rdmacoll {
namespace {

constexpr char kMagic[8] = {'r', 'd', 'm', 'a', 'g', 'r', 'p', '5'};
constexpr std::string_view kDeclined = "rdmadecl";  // and the reason

struct FixedPart {
  char magic[sizeof(kMagic)];
  uint64_t agreement;
  uint32_t rank;
  uint32_t world;
  uint32_t region;
  uint32_t address_bytes;
  uint32_t key_bytes;
  uint32_t token;
};
static_assert(sizeof(FixedPart) == 40);

}  // namespace

std::string GroupRecord::encode() const {
  FixedPart fixed{};
  std::memcpy(fixed.magic, kMagic, sizeof(kMagic));
  fixed.agreement = agreement;
  fixed.rank = rank;
  fixed.world = world;
  fixed.region = region;
  fixed.address_bytes = static_cast<uint32_t>(address.size());
  fixed.key_bytes = static_cast<uint32_t>(key.size());
  fixed.token = token;
  return std::string(reinterpret_cast<const char*>(&fixed), sizeof(fixed)) + address + key;
}

Result<GroupRecord> GroupRecord::decode(const std::string& bytes) {
  if (is_declined(bytes)) {
    return Status(
        StatusCode::PeerFailed,
        "it could not take part: " + printable(std::string_view(bytes).substr(kDeclined.size())));
  }
  FixedPart fixed;
  if (bytes.size() < sizeof(fixed)) {
    return Status(StatusCode::InvalidArgument, "its record is cut short");
  }
  std::memcpy(&fixed, bytes.data(), sizeof(fixed));
  if (std::memcmp(fixed.magic, kMagic, sizeof(kMagic)) != 0) {
    return Status(StatusCode::InvalidArgument,
                  "its record is of another version of rdmacoll; install the same on all hosts");
  }
  if (fixed.address_bytes > kMaxTaggedFieldsBytes || fixed.key_bytes > kMaxTaggedFieldsBytes ||
      bytes.size() != sizeof(fixed) + fixed.address_bytes + fixed.key_bytes) {
    return Status(StatusCode::InvalidArgument, "its record has sizes that do not add up");
  }
  GroupRecord record;
  record.agreement = fixed.agreement;
  record.rank = fixed.rank;
  record.world = fixed.world;
  record.region = fixed.region;
  record.token = fixed.token;
  record.address = bytes.substr(sizeof(fixed), fixed.address_bytes);
  record.key = bytes.substr(sizeof(fixed) + fixed.address_bytes);
  return record;
}

std::string decline_record(const std::string& why) { return std::string(kDeclined) + why; }

bool is_declined(const std::string& bytes) { return bytes.starts_with(kDeclined); }

}  // namespace rdmacoll
