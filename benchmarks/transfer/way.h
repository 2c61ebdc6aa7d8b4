// Way: how one tensor gets from a process to a given one in another process. Both make one.
// Floor: benchmarks. Thread: a process's main one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "csrc/base/status.h"
#include "tests/processes/meeting.h"

namespace rdmacoll::bench {

// The sender or the receiver of a way.
struct Place {
  bool sends = false;
  Meeting* meeting = nullptr;   // of the two
  std::byte* shared = nullptr;  // memory of the two
  int rank() const { return sends ? 0 : 1; }
};

class Way {
 public:
  virtual ~Way() = default;
  // Tensors of this size, and all that is done once for many transfers.
  virtual void prepare(uint64_t bytes) = 0;
  // One transfer. When it returns the sender knows that the data are in the target.
  virtual void send() = 0;
  // What the receiver does for so many, where no other thread does it.
  virtual void serve([[maybe_unused]] int count) {}
  // The sender's source, the receiver's target.
  virtual std::byte* tensor() = 0;
};

struct NamedWay {
  const char* name;
  std::function<std::unique_ptr<Way>(const Place&)> make;
};

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::fflush(stderr);
  _exit(1);
}

inline void need(const Status& status) {
  if (!status.ok()) give_up(status.message());
}

template <typename T>
T needed(Result<T> result) {
  need(result.status());
  return result.take();
}

}  // namespace rdmacoll::bench
