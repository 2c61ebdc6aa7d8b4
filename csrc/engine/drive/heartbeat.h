// Heartbeat: the thread that shows that this process runs (failure/heartbeat_monitor.h), whatever
// else it is at. Floor: engine/drive. Thread: any.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "csrc/engine/drive/driven.h"

namespace rdmacoll {

class Heartbeat {
 public:
  // drive: has the driver do a round, also where nothing is in flight.
  explicit Heartbeat(std::function<void()> drive);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void add(Driven& one);
  // It is not beaten any more when this returns.
  void remove(Driven& one);

 private:
  void run();

  const std::function<void()> drive_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::vector<Driven*> all_;
  std::thread thread_;
};

}  // namespace rdmacoll
