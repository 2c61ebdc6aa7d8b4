// What the ranks of a new group tell each other: what parses is what was encoded.
#include "csrc/engine/connect/group_record.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  const GroupRecord record{
      .agreement = 1, .rank = 2, .world = 4, .address = "address", .key = "key"};
  return {record.encode(), decline_record("there is no memory left")};
}

void run(const std::string& bytes) {
  Result<GroupRecord> record = GroupRecord::decode(bytes);
  if (!record.ok()) return check_error(record.status());
  RDMACOLL_CHECK(record.value().encode() == bytes);
}

}  // namespace rdmacoll::fuzz
