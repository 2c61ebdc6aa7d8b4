// SoleFd. Floor: memory.
#include "csrc/memory/sole_fd.h"

#include <pthread.h>
#include <unistd.h>

#include <set>

namespace rdmacoll {
namespace {

// The descriptors of all. Never destroyed: there may be some after the last static destructor.
std::set<int>& held() {
  static std::set<int>& held = *new std::set<int>;
  return held;
}

}  // namespace

std::mutex& SoleFd::mutex() {
  static std::mutex& mutex = []() -> std::mutex& {
    pthread_atfork([] { SoleFd::mutex().lock(); }, [] { SoleFd::mutex().unlock(); },
                   [] {
                     // Closed and no more: shutdown() would end the parent's connections, too.
                     for (const int fd : held()) ::close(fd);
                     held().clear();
                     ++forks_;
                     SoleFd::mutex().unlock();
                   });
    return *new std::mutex;
  }();
  return mutex;
}

SoleFd::SoleFd(int fd) : fd_(fd), made_after_(forks_) {
  if (fd_ >= 0) held().insert(fd_);
}

void SoleFd::reset() {
  if (valid()) {
    const std::lock_guard lock(mutex());
    held().erase(fd_);
    ::close(fd_);
  }
  fd_ = -1;
}

}  // namespace rdmacoll
