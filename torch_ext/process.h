// Process: what all groups of this process share: one endpoint, opened with the first group and
// closed with the last, and the way out. The only global of the project.
// Floor: torch_ext. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/engine/bootstrap.h"
#include "csrc/engine/endpoint.h"
#include "torch_ext/session.h"

namespace rdmacoll::torch_ext {

class Process {
 public:
  static Process& instance();

  // Joins a group. All its ranks call it; timeout_ms bounds the call and then its operations.
  Result<std::shared_ptr<Session>> join(int rank, int size, Bootstrap& bootstrap,
                                        int64_t timeout_ms);

  // How often this process's line has forked since the first group: tells what a child inherited.
  uint64_t forks() const { return forks_.load(std::memory_order_relaxed); }

  // Before Python leaves: aborts every operation in flight, so that none calls into Python later.
  void quiesce();
  bool leaving() const { return leaving_.load(std::memory_order_relaxed); }

 private:
  Process();
  Result<std::shared_ptr<Endpoint>> endpoint();

  std::atomic<uint64_t> forks_{0};
  std::atomic<bool> leaving_{false};
  std::mutex mutex_;
  uint64_t endpoint_forks_ = 0;  // forks() when endpoint_ was opened
  std::weak_ptr<Endpoint> endpoint_;
  std::vector<std::weak_ptr<Session>> sessions_;
};

}  // namespace rdmacoll::torch_ext
