// Batch: calls that are one operation of who makes them. It has ended when all of them
// have. Floor: ps/client. Thread: under the client's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "csrc/base/status.h"

namespace rdmacoll::ps {

struct Batch {
  uint64_t calls = 0;     // that have not ended
  bool is_begun = false;  // no more are made
  Status status{};        // the first that went wrong

  bool is_done() const { return is_begun && calls == 0; }
  void end_call(const Status& how) {
    --calls;
    if (status.ok()) status = how;
  }
};
using BatchPtr = std::shared_ptr<Batch>;

}  // namespace rdmacoll::ps
