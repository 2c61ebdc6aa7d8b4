// The endpoint's life, forks and the way out. Floor: torch_ext.
#include "torch_ext/process.h"

#include <pthread.h>

#include <new>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/engine/group_setup.h"

namespace rdmacoll::torch_ext {

// Never destroyed: groups may be let go after the last static destructor.
Process& Process::instance() {
  static Process& process = *new Process;
  return process;
}

Process::Process() {
  pthread_atfork(nullptr, nullptr, [] {
    Process& process = instance();
    process.forks_.fetch_add(1, std::memory_order_relaxed);
    new (&process.mutex_) std::mutex;  // another thread of the parent may have held it
    process.sessions_.clear();
  });
}

Result<std::shared_ptr<Endpoint>> Process::endpoint() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (endpoint_forks_ == forks()) {
    if (auto endpoint = endpoint_.lock()) return endpoint;
  }
  auto config = Config::from_environment();
  if (!config.ok()) return config.status();
  auto opened = Endpoint::open(config.value());
  if (opened.ok()) {
    endpoint_ = opened.value();
    endpoint_forks_ = forks();
  }
  return opened;
}

Result<std::shared_ptr<Session>> Process::join(int rank, int size, Bootstrap& bootstrap,
                                               int64_t timeout_ms) {
  auto opened = endpoint();
  if (!opened.ok()) {
    decline_group(bootstrap, opened.status());
    return opened.status();
  }
  auto communicator = opened.value()->create_communicator(rank, size, bootstrap, timeout_ms);
  if (!communicator.ok()) return communicator.status();
  auto session = std::make_shared<Session>(communicator.take());
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(sessions_, [](const auto& other) { return other.expired(); });
  sessions_.push_back(session);
  return session;
}

void Process::quiesce() {
  leaving_.store(true, std::memory_order_relaxed);
  std::vector<std::weak_ptr<Session>> sessions;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    sessions = sessions_;
  }
  for (const auto& weak : sessions) {
    if (auto session = weak.lock()) session->close("this process is leaving", 0);
  }
}

}  // namespace rdmacoll::torch_ext
