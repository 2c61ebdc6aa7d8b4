// AppendedRecords as bytes: of each the rank and its size in 32 bits, in the byte order of all
// hosts that run rdmacoll (little), then itself. Floor: engine/connect.
#include "csrc/engine/connect/appended_records.h"

#include <cstring>

namespace rdmacoll {
namespace {

struct RecordHead {
  uint32_t rank;
  uint32_t bytes;
};

}  // namespace

std::string appended_record(uint32_t rank, const std::string& says) {
  const RecordHead head{rank, static_cast<uint32_t>(says.size())};
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + says;
}

Result<std::vector<std::optional<std::string>>> parse_appended(const std::string& bytes,
                                                               uint32_t world) {
  std::vector<std::optional<std::string>> says(world);
  for (size_t at = 0; at < bytes.size();) {
    RecordHead head{world, 0};
    if (bytes.size() - at >= sizeof head) std::memcpy(&head, bytes.data() + at, sizeof head);
    at += sizeof head;
    if (head.rank >= world || says[head.rank] || bytes.size() - at < head.bytes) {
      return Status(StatusCode::InvalidArgument,
                    "the " + std::to_string(bytes.size()) +
                        " bytes that ranks appended to a key of the store are not what this "
                        "version of rdmacoll writes; run the same version on all ranks");
    }
    says[head.rank] = bytes.substr(at, head.bytes);
    at += head.bytes;
  }
  return says;
}

}  // namespace rdmacoll
