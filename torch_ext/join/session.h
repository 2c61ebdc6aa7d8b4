// Session: one group as this process takes part in it: its communicator, unless it has not joined
// any yet, and how many asynchronous operations are in flight. Held by the backend and by every
// such operation; safe in forked children.
//
// Whoever lets go of the last Session ends the communicator, and with the last communicator the
// endpoint and its thread. The engine's own thread must never be that one, so a backend lets go
// only after nothing is in flight any more; and what a callback lets go of ends in another thread.
// Floor: torch_ext/join. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "csrc/engine/communicator.h"
#include "torch_ext/base/in_flight.h"

namespace rdmacoll::torch_ext {

class Session {
 public:
  explicit Session(std::shared_ptr<Communicator> communicator = nullptr);
  // In a forked child the communicator is its parent's, and stays as it is.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Only if it has joined.
  Communicator& communicator() { return *communicator_; }
  // Outlives the session, so that the end of an operation can be told after it let go.
  const std::shared_ptr<InFlight>& in_flight() { return in_flight_; }

  // Whether the process that made it has forked this one.
  bool inherited() const;
  Status joined() const;
  // Ok, or why no operation may start: not joined, inherited or closed.
  Status usable() const;
  // No operation may start any more. What is in flight may go on for `grace_ms`, then it is
  // aborted; in both cases it has ended when this returns.
  void close(const std::string& reason, int64_t grace_ms);

 private:
  std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>();
  const uint64_t forks_;  // ProcessLife::forks() when it was made
  std::atomic<bool> closed_{false};
};

}  // namespace rdmacoll::torch_ext
