// TaggedFields: what parses is encoded to what parses to the same.
#include "csrc/engine/connect/tagged_fields.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  return {encode({{"shm", "address"}, {"verbs", std::string(120, 'v')}, {"host id", ""}}), ""};
}

void run(const std::string& bytes) {
  Result<TaggedFields> fields = parse_tagged_fields(bytes);
  if (!fields.ok()) return check_error(fields.status());
  const std::string again = encode(fields.value());
  RDMACOLL_CHECK(again.size() == bytes.size());
  Result<TaggedFields> same = parse_tagged_fields(again);
  RDMACOLL_CHECK(same.ok() && same.value() == fields.value());
}

}  // namespace rdmacoll::fuzz
