// Tuning: a table of algorithms that was measured on a machine, as people read and edit it. One row
// a line, the sizes of each kind of group ascending to `any`; from a # on, a line is a comment:
//
//   all_reduce mapped world=2 up_to=16K one_shot
//   all_reduce mapped world=2 up_to=any two_shot     # 3.1 us + 14 GB/s
//   all_reduce hosts=2x4 world=8 up_to=any rails
//
// Rows of a collective, layout and world are all there is for these; what has none keeps the
// defaults (choices.h). Other rows say what links cost (link_rows.h). Floor: plan/choice. Thread: a
// value, immutable once built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/plan/cost/links.h"
#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

inline constexpr uint64_t kAnyBytes = UINT64_MAX;

struct TunedRow {
  uint64_t up_to_bytes;
  Algorithm algorithm;
};

class Tuning {
 public:
  Tuning() = default;  // without rows

  // InvalidArgument names the line, the word and what is allowed there.
  static Result<Tuning> parse(std::string_view text);

  // Ascending, the last up to any; empty: keep the defaults.
  std::vector<TunedRow> rows(Collective collective, const Islands& islands) const;
  // What they cost, for predictions where nothing was measured.
  const Links& links() const { return links_; }

 private:
  struct Group {
    Collective collective;
    std::string layout;
    uint32_t world;
    std::vector<TunedRow> rows;
    size_t last_line;
  };

  static Result<Group> parse_row(const std::vector<std::string_view>& words);
  Status add(Group row);

  std::vector<Group> groups_;
  Links links_;
};

// As in the table: "mapped", "unmapped" (each rank is an island of its own), or "hosts=2x4".
std::string layout_name(const Islands& islands);

}  // namespace rdmacoll
