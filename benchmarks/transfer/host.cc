// Floor: benchmarks. Thread: a process's only one.
#include "benchmarks/transfer/host.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "benchmarks/transfer/way.h"

namespace rdmacoll::bench {
namespace {

struct Namespace {
  const char* name;
  int flag;
};
// The kernel asks who enters a network for rights that he has among its users alone.
constexpr std::array<Namespace, 2> kNamespaces{{{"user", CLONE_NEWUSER}, {"net", CLONE_NEWNET}}};

// It refuses to enter users that one is among.
bool is_apart(pid_t holder, const char* name) {
  struct stat mine{}, theirs{};
  const std::string there = "/proc/" + std::to_string(holder) + "/ns/" + name;
  return stat((std::string("/proc/self/ns/") + name).c_str(), &mine) == 0 &&
         stat(there.c_str(), &theirs) == 0 && mine.st_ino != theirs.st_ino;
}

}  // namespace

void enter(const Host& host) {
  if (host.holder == 0) return;
  const int holder = static_cast<int>(syscall(SYS_pidfd_open, host.holder, 0));
  int flags = 0;
  for (const auto& [name, flag] : kNamespaces) {
    if (holder >= 0 && is_apart(host.holder, name)) flags |= flag;
  }
  if (holder < 0 || (flags != 0 && setns(holder, flags) != 0)) {
    give_up("cannot enter the network of process " + std::to_string(host.holder) + ": " +
            std::strerror(errno));
  }
  close(holder);
}

}  // namespace rdmacoll::bench
