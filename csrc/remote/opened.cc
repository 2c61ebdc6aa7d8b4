// Opened. Floor: remote. Thread: any.
#include "csrc/remote/opened.h"

namespace rdmacoll {

// The owner writes to the line before it asks, so that also a process that was stopped meanwhile
// sees it. Of an opening that had the line before, it may still write a smaller number.
bool Opened::is_revoked() const {
  return revoked_.load(std::memory_order_seq_cst) ||
         (as.stop_line && session->counter(*as.stop_line) >= as.number);
}

Status Opened::failure() const { return is_revoked() ? why_not() : session->failure(); }

Status Opened::why_not() const {
  const Status ended = session->failure();
  if (!ended.ok()) return ended;
  return Status(StatusCode::Aborted,
                who + " has taken '" + info.name + "' back; open it anew once it is exposed again");
}

// Counted before it is looked whether it is revoked: who revokes it looks at the count after that.
std::shared_ptr<Opened::Use> Opened::use() {
  uses_.fetch_add(1);
  auto made = std::make_shared<Use>(uses_, memory_.lock());
  return is_revoked() || made->memory == nullptr ? nullptr : made;
}

bool Opened::take_notification(uint64_t counter) {
  const std::lock_guard lock(mutex_);
  if (counter <= notified_) return false;
  notified_ = counter;
  return true;
}

}  // namespace rdmacoll
