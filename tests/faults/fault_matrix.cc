// The fault matrix on real processes: every fault in every collective, between and inside
// operations, in worlds of 2, 3, 4 and 7. Prints a table and fails if a survivor did not raise, was
// left, could not go on, or found its memory written to.
//   fault_matrix [--part K/N] [--only WORDS] [--seed S]
// Floor: tests.
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "tests/faults/case.h"
#include "tests/faults/family.h"
#include "tests/faults/rank.h"
#include "tests/faults/wanted.h"

namespace {

using namespace rdmacoll;
using namespace rdmacoll::faults;

struct Cell {
  int ran = 0, ended_well = 0;
  int64_t slowest_us = 0;
};
using Table = std::map<std::string, std::map<std::string, Cell>>;  // by row, by column

void print(const Table& table) {
  std::printf("\n%-18s", "worlds, slowest");
  for (size_t i = 0; i < kCollectives; ++i) {
    std::printf(" %15s", collective_name(static_cast<Collective>(i)));
  }
  for (const auto& [row, cells] : table) {
    std::printf("\n%-18s", row.c_str());
    for (size_t i = 0; i < kCollectives; ++i) {
      const auto cell = cells.find(collective_name(static_cast<Collective>(i)));
      char text[32] = "";
      if (cell != cells.end()) {
        std::snprintf(text, sizeof(text), "%d/%d %5.0f ms", cell->second.ended_well,
                      cell->second.ran, static_cast<double>(cell->second.slowest_us) / 1e3);
      }
      std::printf(" %15s", text);
    }
  }
  std::printf("\n\n");
}

Ran run_case(const Case& what, uint64_t seed) {
  return run_family({.world = what.world,
                     .victim = what.victim,
                     .is_stopped = what.fault == Fault::Stop,
                     .run = [&](int rank, Shared& shared) { run_rank(what, rank, seed, shared); }});
}

}  // namespace

int main(int argc, char** argv) {
  Wanted wanted;
  if (!wanted.parse(argc, argv)) {
    std::fprintf(stderr, "usage: fault_matrix %s\n", Wanted::kUsage);
    return 2;
  }
  const SteadyClock clock;
  const int64_t began_ns = clock.now_ns();
  const std::vector<Case> cases = all_cases();
  Table table;
  int ran = 0, failed = 0, late = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = cases[i].name();
    if (!wanted.takes(i, name)) continue;
    const Ran result = run_case(cases[i], wanted.seed + i);
    const std::string row =
        std::string(fault_name(cases[i].fault)) + " " + phase_name(cases[i].phase);
    Cell& cell = table[row][collective_name(cases[i].collective)];
    ++cell.ran;
    cell.ended_well += result.problem.empty();
    cell.slowest_us = std::max(cell.slowest_us, result.slowest_us);
    ++ran;
    failed += !result.problem.empty();
    late += cases[i].fault != Fault::Stop && result.slowest_us > 1'000'000;
    if (!result.problem.empty()) std::printf("%s:%s\n", name.c_str(), result.problem.c_str());
    std::fflush(stdout);
  }
  print(table);
  std::printf("%d cases in %.0f s: %d failed, %d took a survivor more than a second\n", ran,
              static_cast<double>(clock.now_ns() - began_ns) / 1e9, failed, late);
  return failed == 0 && ran > 0 ? 0 : 1;
}
