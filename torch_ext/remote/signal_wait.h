// SignalWait: a wait for what another rank signals a window. Nothing is in flight for it but while
// somebody waits, so one that nobody waits for holds nothing up.
// Floor: torch_ext/remote. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

#include "csrc/remote/remote.h"
#include "torch_ext/remote/remote_face.h"

namespace rdmacoll::torch_ext {

class SignalWait final : public c10d::Work {
 public:
  // sender: this rank's opening there, by which it learns of the other's end. name, number: what is
  // exposed here for the other, and what it is to be notified of.
  SignalWait(RemoteFacePtr face, OpenedPtr sender, std::string name, uint64_t number,
             int64_t timeout_ms)
      : Work(-1, c10d::OpType::UNKNOWN),
        face_(std::move(face)),
        sender_(std::move(sender)),
        name_(std::move(name)),
        number_(number),
        timeout_ms_(timeout_ms) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  void synchronize() override {}  // CPU tensors have no streams
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;

 private:
  Status look(int64_t limit_ms, const InterruptCheck& interrupt) const;

  const RemoteFacePtr face_;
  const OpenedPtr sender_;
  const std::string name_;
  const uint64_t number_;
  const int64_t timeout_ms_;
};

}  // namespace rdmacoll::torch_ext
