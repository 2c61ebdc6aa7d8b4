// Heartbeat. Floor: engine/drive. Thread: any.
#include "csrc/engine/drive/heartbeat.h"

#include <chrono>

#include "csrc/base/limits.h"

namespace rdmacoll {

Heartbeat::Heartbeat() : thread_([this] { run(); }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

void Heartbeat::add(Driven& one) {
  const std::lock_guard<std::mutex> lock(mutex_);
  all_.push_back(&one);
  one.beat();
}

void Heartbeat::remove(Driven& one) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase(all_, &one);
}

void Heartbeat::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    for (Driven* one : all_) one->beat();
    stop_.wait_for(lock, std::chrono::nanoseconds(kHeartbeatNs));
  }
}

}  // namespace rdmacoll
