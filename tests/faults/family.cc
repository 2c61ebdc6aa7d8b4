// Family. Floor: tests. Thread: one, so that it may fork.
#include "tests/faults/family.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/base/clock.h"

namespace rdmacoll::faults {
namespace {

constexpr int64_t kHangMs = 30'000;

std::string ending_of(int status) {
  if (WIFSIGNALED(status))
    return " (it was ended by signal " + std::to_string(WTERMSIG(status)) + ")";
  return "";
}

class Family {
 public:
  explicit Family(const FamilyPlan& plan) : plan_(plan) {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    RDMACOLL_CHECK(memory != MAP_FAILED);
    shared_ = new (memory) Shared();
    for (int rank = 0; rank < plan.world; ++rank) {
      const pid_t pid = fork();
      RDMACOLL_CHECK(pid >= 0);
      if (pid == 0) plan.run(rank, *shared_);
      children_.push_back({pid, false, 0});
    }
  }
  ~Family() { munmap(shared_, sizeof(Shared)); }

  void wait_for_all() {
    const SteadyClock clock;
    const Deadline deadline = Deadline::after_ms(clock, kHangMs);
    while (!reap(WNOHANG) && !deadline.passed(clock)) {
      wake_victim();
      usleep(500);
    }
    for (const Child& child : children_) {
      if (child.ended) continue;
      hung_ = true;
      kill(child.pid, SIGKILL);
    }
    reap(0);
  }

  Ran judge() const {
    Ran ran;
    for (int rank = 0; rank < plan_.world; ++rank) {
      const Shared::Rank& told = shared_->ranks[rank];
      const bool must_raise = rank != plan_.victim || plan_.is_stopped;
      if (must_raise && (told.outcome != Outcome::Raised || child(rank).status != 0)) {
        ran.problem += "\n    rank " + std::to_string(rank) + ": " +
                       (told.text[0] == 0 ? "nothing is known of it" : told.text) +
                       ending_of(child(rank).status);
      }
      if (rank == plan_.victim) continue;
      const int64_t us = (told.raised_ns - shared_->fault_ns) / 1000;
      ran.slowest_us = std::max(ran.slowest_us, us);
    }
    if (hung_) ran.problem += "\n    processes were left after 30 s";
    return ran;
  }

 private:
  struct Child {
    pid_t pid;
    bool ended;
    int status;
  };
  const Child& child(int rank) const { return children_[static_cast<size_t>(rank)]; }

  bool reap(int how) {
    for (Child& child : children_) {
      if (!child.ended) child.ended = waitpid(child.pid, &child.status, how) == child.pid;
    }
    return std::all_of(children_.begin(), children_.end(), [](const Child& c) { return c.ended; });
  }

  // One that was stopped wakes in the middle of what it did, once nobody waits for it any more.
  void wake_victim() {
    if (!plan_.is_stopped || shared_->raised < plan_.world - 1) return;
    kill(child(plan_.victim).pid, SIGCONT);
  }

  const FamilyPlan& plan_;
  Shared* shared_;
  std::vector<Child> children_;
  bool hung_ = false;
};

}  // namespace

Ran run_family(const FamilyPlan& plan) {
  Family family(plan);
  family.wait_for_all();
  return family.judge();
}

}  // namespace rdmacoll::faults
