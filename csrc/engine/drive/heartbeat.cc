// Heartbeat. Floor: engine/drive. Thread: any.
#include "csrc/engine/drive/heartbeat.h"

#include <chrono>
#include <utility>

#include "csrc/base/limits.h"

namespace rdmacoll {

Heartbeat::Heartbeat(std::function<void()> drive)
    : drive_(std::move(drive)), thread_([this] { run(); }) {}

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
    bool is_wanted = false;
    for (Driven* one : all_) is_wanted |= one->beat();
    if (is_wanted) {
      lock.unlock();
      drive_();
      lock.lock();
      if (stopping_) return;
    }
    stop_.wait_for(lock, std::chrono::nanoseconds(kHeartbeatNs));
  }
}

}  // namespace rdmacoll
