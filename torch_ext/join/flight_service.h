// FlightService: a thread that hands out this process's flight recorder: to `rdmacoll debug dump`
// over a unix socket, and to a file on SIGUSR2. The main thread may be stuck in a wait, with the
// GIL, so neither Python nor the engine's driver has a part in it.
//
// The socket has an abstract name, "rdmacoll-debug/<pid>/<random>", which vanishes with the process
// and which rdmacoll/debug/ask.py finds in /proc/net/unix. It answers this process's user and root.
// Floor: torch_ext/join. Thread: any.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/engine/recorder/flight_recorder.h"
#include "csrc/memory/unique_fd.h"

namespace rdmacoll::torch_ext {

class FlightService {
 public:
  // Listens, and takes SIGUSR2 if there is a folder for dumps and the program does not handle that
  // signal itself. Lives as long as the process.
  static Result<std::unique_ptr<FlightService>> start(const Config& config);

  // From now on this one is handed out.
  void serve(std::shared_ptr<FlightRecorder> recorder);
  // In a forked child, where the thread is not: the parent's name shall not outlive the parent.
  void forget() { listener_.reset(); }

 private:
  FlightService(UniqueFd listener, UniqueFd asked);
  void run();
  void answer();
  void write_file();
  std::shared_ptr<FlightRecorder> recorder();

  UniqueFd listener_;
  UniqueFd asked_;  // an eventfd, which the signal handler writes; none: nobody asks by a signal
  std::mutex mutex_;
  std::shared_ptr<FlightRecorder> recorder_;  // under the mutex
  std::thread thread_;
};

}  // namespace rdmacoll::torch_ext
