// SoleFd: a file descriptor that closes itself, and that forked children do not get: a copy in a
// child would keep a connection, a port or a name after this process has ended, and nobody would
// see that end. In the child it is invalid.
// Floor: memory. Thread: a value, one owner; another thread may fork at any time.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

namespace rdmacoll {

class SoleFd {
 public:
  SoleFd() = default;
  // make() opens it; -1, and errno says why, if it cannot. It does not block, for a fork waits.
  template <typename Make>
  static SoleFd made_by(Make make) {
    const std::lock_guard lock(mutex());
    return SoleFd(make());
  }
  SoleFd(SoleFd&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), made_after_(other.made_after_) {}
  SoleFd& operator=(SoleFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(made_after_, other.made_after_);
    return *this;
  }
  ~SoleFd() { reset(); }

  int get() const { return made_after_ == forks_ ? fd_ : -1; }
  bool valid() const { return get() >= 0; }
  void reset();

 private:
  explicit SoleFd(int fd);
  // Locked across a fork, so that no other thread is between opening one and noting it then.
  static std::mutex& mutex();

  inline static uint64_t forks_ = 0;  // from which this process descends

  int fd_ = -1;
  uint64_t made_after_ = 0;  // as many forks
};

}  // namespace rdmacoll
