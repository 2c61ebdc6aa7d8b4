// Batch: calls that are one operation of who makes them. It has ended when all of them have.
// Floor: ps/client. Thread: is_done() any; the rest under the client's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "csrc/base/status.h"

namespace rdmacoll::ps {

class Batch {
 public:
  // The status is looked at after that.
  bool is_done() const { return open_.load(std::memory_order_acquire) == 0; }
  const Status& status() const { return status_; }  // the first that went wrong

  void add_calls(uint64_t calls) { open_.fetch_add(calls, std::memory_order_relaxed); }
  void end_call(const Status& how) {
    if (status_.ok()) status_ = how;
    open_.fetch_sub(1, std::memory_order_release);
  }

 private:
  std::atomic<uint64_t> open_{1};  // calls; the first is that to make the others
  Status status_;
};
using BatchPtr = std::shared_ptr<Batch>;

}  // namespace rdmacoll::ps
