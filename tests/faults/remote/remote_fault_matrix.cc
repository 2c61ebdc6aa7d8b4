// The fault matrix of remote memory on real processes: the owner or the reader is killed, ends,
// leaves or is stopped in the middle of every use. Prints a table and fails if somebody hung,
// raised something else, was touched without reason, or could not go on.
//   remote_fault_matrix TRANSPORT,... [--part K/N] [--only WORDS] [--seed S]
// Floor: tests.
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "tests/faults/family.h"
#include "tests/faults/remote/remote_case.h"
#include "tests/faults/remote/remote_process.h"
#include "tests/faults/wanted.h"

namespace {

using namespace rdmacoll;
using namespace rdmacoll::faults;

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Ran run_case(const RemoteCase& what, uint64_t seed) {
  return run_family(
      {.world = kRemoteRoles,
       .victim = what.victim,
       .is_stopped = what.fault == Fault::Stop,
       .run = [&](int rank, Shared& shared) { RemoteProcess(what, rank, seed, shared).run(); }});
}

}  // namespace

int main(int argc, char** argv) {
  Wanted wanted;
  if (argc < 2 || !wanted.parse(argc - 1, argv + 1)) {
    std::fprintf(stderr, "usage: remote_fault_matrix TRANSPORT,... %s\n", Wanted::kUsage);
    return 2;
  }
  const SteadyClock clock;
  const int64_t began_ns = clock.now_ns();
  const std::vector<RemoteCase> cases = all_remote_cases(parts_of(argv[1]));
  int ran = 0, failed = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = cases[i].name();
    if (!wanted.takes(i, name)) continue;
    const Ran result = run_case(cases[i], wanted.seed + i);
    ++ran;
    failed += !result.problem.empty();
    std::printf("%-36s %6.0f ms%s\n", name.c_str(), static_cast<double>(result.slowest_us) / 1e3,
                result.problem.c_str());
    std::fflush(stdout);
  }
  std::printf("%d cases in %.0f s: %d failed\n", ran,
              static_cast<double>(clock.now_ns() - began_ns) / 1e9, failed);
  return failed == 0 && ran > 0 ? 0 : 1;
}
