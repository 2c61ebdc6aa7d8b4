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

#include "benchmarks/transfer/host.h"
#include "csrc/base/status.h"
#include "tests/processes/meeting.h"

namespace rdmacoll::bench {

// The sender or the receiver of a way.
struct Place {
  bool sends = false;
  bool reads = false;           // the receiver, before it answers, all that has come
  Meeting* meeting = nullptr;   // of the two
  std::byte* shared = nullptr;  // memory of the two
  Host host{};                  // where this one runs
  int rank() const { return sends ? 0 : 1; }
};

// What the receiver calls once it has all of it. Memory that another core has written comes to this
// one when it is read; a way that copies here has paid for that already.
inline void use(const Place& place, const std::byte* data, uint64_t bytes) {
  constexpr uint64_t kLineBytes = 64;
  if (!place.reads) return;
  uint64_t sum = 0;
  for (uint64_t at = 0; at < bytes; at += kLineBytes) sum += static_cast<uint64_t>(data[at]);
  asm volatile("" ::"r"(sum));
}

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
  bool is_for_one_host = false;  // left out between two
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
