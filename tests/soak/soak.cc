// The soak: some ranks under all the load they can make for a time, with many groups, threads,
// signals and forks at once, results checked. Fails if one is wrong, hangs, or leaves something.
//   soak [--seconds S] [--ranks N] [--seed K]
// Floor: tests.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/base/clock.h"
#include "tests/soak/rank.h"

namespace {

using namespace rdmacoll;

constexpr int64_t kLateMs = 60'000;  // past the time they were given

bool parse(int argc, char** argv, soak::Wanted* wanted) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const int64_t value = std::atoll(argv[i + 1]);
    if (option == "--seconds") {
      wanted->seconds = value;
    } else if (option == "--ranks") {
      wanted->ranks = static_cast<int>(value);
    } else if (option == "--seed") {
      wanted->seed = static_cast<uint64_t>(value);
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && wanted->seconds > 0 && wanted->ranks > 1 &&
         wanted->ranks <= Meeting::kMaxRanks;
}

// Whether all ended well in time. One that does not takes the others with it.
bool wait_for(std::vector<pid_t> children, int64_t seconds) {
  const SteadyClock clock;
  const Deadline deadline = Deadline::after_ms(clock, seconds * 1000 + kLateMs);
  bool ok = true;
  while (!children.empty()) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended == 0 && ok && deadline.passed(clock)) {
      std::fprintf(stderr, "ranks were still running %lld s past their time\n",
                   static_cast<long long>(kLateMs / 1000));
      status = 1;
    }
    if (ended > 0) std::erase(children, ended);
    if (status != 0 && ok) {
      ok = false;
      for (const pid_t child : children) kill(child, SIGKILL);
    }
    if (ended == 0) usleep(10'000);
  }
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  soak::Wanted wanted;
  if (!parse(argc, argv, &wanted)) {
    std::fprintf(stderr, "usage: soak [--seconds S] [--ranks 2..8] [--seed K]\n");
    return 2;
  }
  void* memory =
      mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  RDMACOLL_CHECK(memory != MAP_FAILED);
  auto& meeting = *new (memory) Meeting();
  std::vector<pid_t> children;
  for (int rank = 0; rank < wanted.ranks; ++rank) {
    const pid_t child = fork();
    RDMACOLL_CHECK(child >= 0);
    if (child == 0) soak::run_rank(wanted, rank, meeting);
    children.push_back(child);
  }
  return wait_for(children, wanted.seconds) ? 0 : 1;
}
