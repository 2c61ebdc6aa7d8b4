// WakeFd: an eventfd. Whoever rings it wakes the thread that polls it.
// Floor: memory. Thread: ring() any; drain() the one that polls.
#pragma once

#include "csrc/base/status.h"
#include "csrc/memory/unique_fd.h"

namespace rdmacoll {

class WakeFd {
 public:
  static Result<WakeFd> create();
  WakeFd() = default;
  // Of a descriptor that is an eventfd which does not block.
  explicit WakeFd(UniqueFd fd) : fd_(std::move(fd)) {}

  int get() const { return fd_.get(); }
  // Makes it readable until drain().
  void ring() const;
  void drain() const;

 private:
  UniqueFd fd_;
};

}  // namespace rdmacoll
