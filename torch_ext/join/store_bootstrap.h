// StoreBootstrap: the ranks of a new group meet in torch's key-value store.
// Floor: torch_ext/join. Thread: the one that makes the group.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "csrc/engine/connect/bootstrap.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll::torch_ext {

class StoreBootstrap final : public Bootstrap {
 public:
  StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                 InterruptCheck interrupt);
  Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline deadline) override;
  void decline(const std::string& mine) override;

 private:
  // This rank's next exchange, and the key of each rank in it.
  std::vector<std::string> next_keys();
  std::vector<std::string> read(const std::vector<std::string>& keys);
  void forget(const std::vector<std::string>& keys);
  Status wait_for(const std::vector<std::string>& keys, Deadline deadline);
  std::string missing(const std::vector<std::string>& keys);

  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_;
  const int size_;
  const InterruptCheck interrupt_;
};

}  // namespace rdmacoll::torch_ext
