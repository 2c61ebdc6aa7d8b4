// LinkerThread: links ranks while nobody waits for that: this process may compute, or wait for
// something else, when others need a link to it. It sleeps until somebody does.
// Floor: engine/connect. Thread: one of its own.
#pragma once

#include <atomic>
#include <thread>

#include "csrc/engine/connect/linker.h"

namespace rdmacoll {

class LinkerThread {
 public:
  explicit LinkerThread(Linker& linker)
      : linker_(linker), thread_([this] {
          LinkerTurns turns(linker_, std::nullopt);
          while (!stopping_.load()) turns.take();
        }) {}
  ~LinkerThread() {
    stopping_.store(true);
    linker_.wake();
    thread_.join();
  }
  LinkerThread(const LinkerThread&) = delete;
  LinkerThread& operator=(const LinkerThread&) = delete;

 private:
  Linker& linker_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rdmacoll
