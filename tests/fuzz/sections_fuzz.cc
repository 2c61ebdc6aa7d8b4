// Sections: what parses is encoded to what parses to the same.
#include "csrc/engine/connect/sections.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  return {encode({{"shm", "card"}, {"verbs", std::string(120, 'v')}, {"host id", ""}}), ""};
}

void run(const std::string& bytes) {
  Result<Sections> sections = parse_sections(bytes);
  if (!sections.ok()) return check_error(sections.status());
  const std::string again = encode(sections.value());
  RDMACOLL_CHECK(again.size() == bytes.size());
  Result<Sections> same = parse_sections(again);
  RDMACOLL_CHECK(same.ok() && same.value() == sections.value());
}

}  // namespace rdmacoll::fuzz
