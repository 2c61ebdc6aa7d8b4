// AppendedRecords: what parses is appended to what parses to the same.
#include "csrc/engine/connect/appended_records.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

constexpr uint32_t kWorld = 4;

}  // namespace

std::vector<std::string> seeds() {
  return {appended_record(3, "a record") + appended_record(0, std::string(120, 'r')), ""};
}

void run(const std::string& bytes) {
  auto says = parse_appended(bytes, kWorld);
  if (!says.ok()) return check_error(says.status());
  std::string again;
  for (uint32_t rank = 0; rank < kWorld; ++rank) {
    if (says.value()[rank]) again += appended_record(rank, *says.value()[rank]);
  }
  RDMACOLL_CHECK(again.size() == bytes.size());
  auto same = parse_appended(again, kWorld);
  RDMACOLL_CHECK(same.ok() && same.value() == says.value());
}

}  // namespace rdmacoll::fuzz
