// EventQueue: what get_cq_event() and get_async_event() read, behind a real descriptor: readable
// while there is something; whether reading waits is the user's choice by fcntl().
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <deque>
#include <mutex>

#include "csrc/memory/unique_fd.h"

namespace rdmacoll::fake {

template <typename T>
class EventQueue {
 public:
  int fd() const { return fd_.get(); }

  void push(const T& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    ::eventfd_write(fd_.get(), 1);
  }

  // False, with errno, when there is none and the descriptor does not block.
  bool take(T* event) {
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (!events_.empty()) {
          *event = events_.front();
          events_.pop_front();
          count_down(1);
          return true;
        }
      }
      if ((::fcntl(fd_.get(), F_GETFL) & O_NONBLOCK) != 0) {
        errno = EAGAIN;
        return false;
      }
      pollfd readable{fd_.get(), POLLIN, 0};
      ::poll(&readable, 1, -1);
    }
  }

  // As for a queue that is destroyed: what was not taken is not told any more.
  template <typename Predicate>
  void forget(Predicate gone) {
    const std::lock_guard lock(mutex_);
    count_down(std::erase_if(events_, gone));
  }

 private:
  // The descriptor's count is the number of events, so this never waits.
  void count_down(size_t events) {
    for (eventfd_t one = 0; events > 0; --events) ::eventfd_read(fd_.get(), &one);
  }

  const UniqueFd fd_{::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)};
  std::mutex mutex_;
  std::deque<T> events_;
};

}  // namespace rdmacoll::fake
