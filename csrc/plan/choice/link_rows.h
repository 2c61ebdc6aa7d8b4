// Rows of a tuned table (tuning.h) that say what links cost:
//
//   link network latency_ns=21000 overhead_ns=5200 gap_ps=640 host_gap_ps=480
//   link memory latency_ns=350 overhead_ns=120 gap_ps=140
//
// What a row does not name keeps its default (cost/links.h). Floor: plan/choice. Thread: pure
// functions.
#pragma once

#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/plan/cost/links.h"

namespace rdmacoll {

inline constexpr std::string_view kLink = "link";

// The words of one row, the first of which is kLink. InvalidArgument names the word and what is
// allowed there.
Status read_link_row(const std::vector<std::string_view>& words, Links* links);

}  // namespace rdmacoll
