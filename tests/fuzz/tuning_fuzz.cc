// A table of algorithms, which people write: what parses answers for every group it names.
#include "csrc/plan/choice/tuning.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  return {
      "all_reduce mapped world=2 up_to=16K one_shot\nall_reduce mapped world=2 up_to=any "
      "two_shot\n",
      "# measured\n\nbroadcast unmapped world=4096 up_to=any tree  # 3.1 us\r\n",
      "all_gather unmapped world=8 up_to=1G ring\n"};
}

void run(const std::string& bytes) {
  Result<Tuning> tuning = Tuning::parse(bytes);
  if (!tuning.ok()) return check_error(tuning.status());
  for (size_t index = 0; index < kCollectives; ++index) {
    for (const bool mapped : {false, true}) {
      uint64_t before = 0;
      const auto rows = tuning.value().rows(static_cast<Collective>(index), 2, {mapped});
      for (const TunedRow& row : rows) {
        RDMACOLL_CHECK(&row == rows.data() || row.up_to_bytes > before);
        before = row.up_to_bytes;
      }
      RDMACOLL_CHECK(rows.empty() || before == kAnyBytes);
    }
  }
}

}  // namespace rdmacoll::fuzz
