// A table of algorithms, which people write: what parses answers for every group it names.
#include "csrc/plan/choice/tuning.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  return {
      "all_reduce mapped world=2 up_to=16K one_shot\nall_reduce mapped world=2 up_to=any "
      "two_shot\n",
      "# measured\n\nbroadcast unmapped world=4096 up_to=any tree  # 3.1 us\r\n",
      "all_gather unmapped world=8 up_to=1G ring\n",
      "all_reduce hosts=2x2 world=4 up_to=any rails\n",
      "link network latency_ns=21000 overhead_ns=5200 gap_ps=640 host_gap_ps=480\n"};
}

void run(const std::string& bytes) {
  Result<Tuning> tuning = Tuning::parse(bytes);
  if (!tuning.ok()) return check_error(tuning.status());
  for (size_t index = 0; index < kCollectives; ++index) {
    for (const char* shape : {"2", "2x1", "2x2"}) {
      uint64_t before = 0;
      const Islands islands = Islands::of_shape(shape).take();
      const auto rows = tuning.value().rows(static_cast<Collective>(index), islands);
      for (const TunedRow& row : rows) {
        RDMACOLL_CHECK(&row == rows.data() || row.up_to_bytes > before);
        before = row.up_to_bytes;
      }
      RDMACOLL_CHECK(rows.empty() || before == kAnyBytes);
    }
  }
}

}  // namespace rdmacoll::fuzz
