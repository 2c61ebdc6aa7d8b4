// ProcessLife. Floor: torch_ext/base.
#include "torch_ext/base/process_life.h"

#include <pthread.h>

#include <new>
#include <system_error>
#include <utility>

namespace rdmacoll::torch_ext {

// Never destroyed: groups may be let go after the last static destructor.
ProcessLife& ProcessLife::instance() {
  static ProcessLife& life = *new ProcessLife;
  return life;
}

ProcessLife::ProcessLife() {
  pthread_atfork(nullptr, nullptr, [] {
    ProcessLife& life = instance();
    life.forks_.fetch_add(1, std::memory_order_relaxed);
    new (&life.mutex_) std::mutex;    // another thread of the parent may have held it
    new (&life.ending_) std::thread;  // what was there is the parent's
  });
}

void ProcessLife::end_elsewhere(std::shared_ptr<void> last) {
  struct Ending {
    std::thread before;
    std::shared_ptr<void> last;
  };
  const std::lock_guard<std::mutex> lock(mutex_);
  auto* const ending = new Ending{std::move(ending_), std::move(last)};
  try {
    ending_ = std::thread([ending] {
      const std::unique_ptr<Ending> mine(ending);
      if (mine->before.joinable()) mine->before.join();
    });
  } catch (const std::system_error&) {
    // No thread is to be had. It is leaked: its end would wait for this thread.
    ending_ = std::move(ending->before);
  }
}

void ProcessLife::join_ends() {
  std::thread ending;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending.swap(ending_);
  }
  if (ending.joinable()) ending.join();
}

}  // namespace rdmacoll::torch_ext
