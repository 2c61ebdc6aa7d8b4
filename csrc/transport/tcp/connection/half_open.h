// HalfOpen: a connection on which two processes still say who they are.
// Floor: transport/tcp/connection. Thread: under the transport's mutex; nothing blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "csrc/base/job_key.h"
#include "csrc/memory/sole_fd.h"
#include "csrc/transport/tcp/connection/handshake.h"

namespace rdmacoll::tcp {

class HalfOpen {
 public:
  HalfOpen(SoleFd fd, Handshake handshake)
      : fd_(std::move(fd)), handshake_(std::move(handshake)), connecting_(handshake_.dials()) {}

  enum class Progress {
    Waits,
    // This side is done. What it says last has not been said: the caller may refuse, and then says
    // it.
    Met,
    Failed,  // why() says why
    HungUp,  // the other side has ended it, without a word
  };
  Progress advance(const JobKey& key);
  // Sends what is left to be said. False: it cannot be.
  bool say();

  int fd() const { return fd_.get(); }
  SoleFd take_fd() { return std::move(fd_); }
  Handshake& handshake() { return handshake_; }
  const Handshake& handshake() const { return handshake_; }
  const Status& why() const { return why_; }
  // A dialler's has found somebody who listens.
  bool connected() const { return !connecting_; }

 private:
  bool still_connecting();
  Progress hear(const JobKey& key);

  SoleFd fd_;
  Handshake handshake_;
  bool connecting_;
  std::array<std::byte, sizeof(Greeting)> said_{};  // what is heard next, as far as it has come
  size_t said_bytes_ = 0;
  Status why_;
};

}  // namespace rdmacoll::tcp
