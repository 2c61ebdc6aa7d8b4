// CompletionQueue: see its header.
#include "tests/fake_verbs/completion_queue.h"

#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/queue_pair.h"

namespace rdmacoll::fake {

void CompletionQueue::push(const Completion& completion) {
  const std::lock_guard lock(queue_mutex_);
  require(entries_.size() < static_cast<size_t>(cqe), "a completion queue overflows");
  entries_.push_back(completion);
  const bool special = completion.solicited || completion.wc.status != IBV_WC_SUCCESS;
  if (armed_ == Armed::No || (armed_ == Armed::Solicited && !special)) return;
  armed_ = Armed::No;
  if (channel == nullptr) return;
  static_cast<CompletionChannel*>(channel)->events.push(this);
}

int CompletionQueue::poll(int entries, ibv_wc* completions) {
  require(!destroyed, "a completion queue is polled after its end");
  const std::lock_guard lock(queue_mutex_);
  int count = 0;
  for (; count < entries && !entries_.empty(); ++count) {
    const Completion& first = entries_.front();
    completions[count] = first.wc;
    if (first.receive) {
      ++first.queue_pair->receives_taken;
    } else {
      first.queue_pair->sends_taken = first.sends_done;
    }
    entries_.pop_front();
  }
  return count;
}

int CompletionQueue::notify(bool solicited_only) {
  require(!destroyed, "a completion queue is asked to notify after its end");
  const std::lock_guard lock(queue_mutex_);
  if (armed_ != Armed::Any) armed_ = solicited_only ? Armed::Solicited : Armed::Any;
  return 0;
}

int CompletionQueue::resize(int entries) {
  const std::lock_guard lock(queue_mutex_);
  if (entries < 1 || entries_.size() > static_cast<size_t>(entries)) return EINVAL;
  cqe = entries;
  return 0;
}

void CompletionQueue::forget(const QueuePair* queue_pair) {
  const std::lock_guard lock(queue_mutex_);
  std::erase_if(entries_, [&](const Completion& entry) { return entry.queue_pair == queue_pair; });
}

}  // namespace rdmacoll::fake
