// ServerHost. Floor: ps/server. Thread: see server_host.h.
#include "csrc/ps/server/server_host.h"

#include <algorithm>
#include <utility>

#include "csrc/ps/wire/meeting.h"

namespace rdmacoll::ps {
namespace {

// How long it sleeps where nothing comes: then it looks for lines that have failed.
constexpr int64_t kLookMs = 200;

}  // namespace

Result<std::unique_ptr<ServerHost>> ServerHost::make(Remote& remote, uint64_t memory_bytes) {
  RDMACOLL_RETURN_IF_ERROR(begin_to_hear(remote));
  return std::unique_ptr<ServerHost>(new ServerHost(remote, memory_bytes));
}

Status ServerHost::hear(int64_t timeout_ms, const InterruptCheck& interrupt) {
  auto line = hear_call({remote_, timeout_ms, interrupt});
  if (!line.ok()) return line.status();
  {
    const std::lock_guard lock(mutex_);
    new_.push_back(line.take());
  }
  told_->has_new.store(true);
  wake();
  return Status();
}

void ServerHost::stop() {
  told_->is_stopped.store(true);
  wake();
}

void ServerHost::wake() {
  remote_.watch([] { return true; }, "", 0);
}

ServerStats ServerHost::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

bool ServerHost::take_new() {
  if (!told_->has_new.exchange(false)) return false;
  const std::lock_guard lock(mutex_);
  for (auto& line : std::exchange(new_, {})) {
    server_.add(line);
    lines_.push_back(std::move(line));
  }
  return true;
}

Status ServerHost::serve(const InterruptCheck& interrupt) {
  while (!told_->is_stopped.load()) {
    const bool had_any = take_new() | server_.turn();
    if (had_any) {
      const std::lock_guard lock(mutex_);
      stats_ = server_.stats();
      continue;
    }
    std::erase_if(lines_, [](const auto& line) { return !line->failure().ok(); });
    const WorkPtr news = remote_.watch(
        [told = told_, lines = lines_] {
          return told->is_stopped.load() || told->has_new.load() ||
                 std::ranges::any_of(lines, [](const auto& line) { return line->has_news(); });
        },
        "", kLookMs);
    const Status waited = remote_.wait(*news, -1, interrupt);
    if (!waited.ok() && waited.code() != StatusCode::Timeout) return waited;
  }
  return Status();
}

}  // namespace rdmacoll::ps
