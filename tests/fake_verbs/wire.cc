// Wire: its thread, and whose turn it is.
#include "tests/fake_verbs/wire.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>

namespace rdmacoll::fake {
namespace {

constexpr int kMovesAtATime = 64;       // with the lock taken once
constexpr uint64_t kLongestStall = 64;  // moves
constexpr double kStallShare = 0.1;

}  // namespace

Wire::Wire(Registry& registry, const NetworkSpec& spec)
    : registry_(registry),
      spec_(spec),
      random_(spec.seed),
      datagram_loss_(spec.datagram_loss),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

Wire::~Wire() {
  stop_ = true;
  ::eventfd_write(bell_.get(), 1);
  thread_.join();
  take_postings();
}

Wire::Hold::Hold(Wire& wire) {
  ++wire.callers_;
  lock_ = std::unique_lock(wire.mutex_);
  --wire.callers_;
  wire.take_postings();
}

// The list is pushed to with release and taken with acquire, so order runs one way only.
void Wire::submit(std::unique_ptr<Posting> posting) {
  Posting* const made = posting.release();
  made->before = postings_.load(std::memory_order_relaxed);
  while (!postings_.compare_exchange_weak(made->before, made)) {
  }
  if (asleep_.exchange(false)) ::eventfd_write(bell_.get(), 1);
}

void Wire::take_postings() {
  std::vector<std::unique_ptr<Posting>> taken;
  for (Posting* next = postings_.exchange(nullptr, std::memory_order_acquire); next != nullptr;) {
    taken.emplace_back(next);
    next = next->before;
  }
  std::for_each(taken.rbegin(), taken.rend(), [&](const auto& posting) { take(*posting); });
}

void Wire::take(Posting& posting) {
  QueuePair& queue_pair = *posting.queue_pair;
  if (!queue_pair.lives()) return;
  for (Message& message : posting.sends) {
    if (message.to != nullptr) ++message.to->messages;
    queue_pair.sends.push_back(std::move(message));
  }
  std::move(posting.receives.begin(), posting.receives.end(),
            std::back_inserter(queue_pair.receives));
  if (queue_pair.current == IBV_QPS_ERR) return flush(queue_pair);
  if (queue_pair.sends.empty() || queue_pair.busy) return;
  queue_pair.busy = true;
  busy_.push_back(&queue_pair);
}

void Wire::run() {
  while (!stop_) {
    bool moved = false;
    {
      const std::lock_guard lock(mutex_);
      now_ = std::chrono::steady_clock::now();
      take_postings();
      for (int i = 0; i < kMovesAtATime && move(); ++i) moved = true;
    }
    if (!moved) {
      sleep();
    } else {
      do std::this_thread::yield();
      while (callers_ > 0);
    }
  }
}

bool Wire::stands_still(const QueuePair& queue_pair) const {
  return queue_pair.qp_type == IBV_QPT_RC &&
         registry_.device_of(queue_pair.context).faults.stands_still;
}

bool Wire::ready(const QueuePair& queue_pair) const {
  return queue_pair.stalled_until <= moves_ && queue_pair.again_at <= now_ &&
         !stands_still(queue_pair);
}

// False: nothing to do now.
bool Wire::move() {
  ++moves_;
  std::erase_if(busy_, [](QueuePair* queue_pair) {
    if (queue_pair->lives() && !queue_pair->sends.empty()) return false;
    queue_pair->busy = false;
    return true;
  });
  if (!datagrams_.empty() && random(busy_.size() + 1) == 0 && move_datagram()) return true;
  const size_t first = busy_.empty() ? 0 : random(busy_.size());
  for (size_t i = 0; i < busy_.size(); ++i) {
    QueuePair& queue_pair = *busy_[(first + i) % busy_.size()];
    if (!ready(queue_pair)) continue;
    if (chance(kStallShare)) queue_pair.stalled_until = moves_ + random(kLongestStall);
    if (queue_pair.qp_type == IBV_QPT_RC) {
      advance(queue_pair);
    } else {
      send_datagram(queue_pair);
    }
    return true;
  }
  // Stalls are short; waits for an answer take real time.
  return !datagrams_.empty() || std::any_of(busy_.begin(), busy_.end(), [&](QueuePair* waiting) {
    return waiting->again_at <= now_ && !stands_still(*waiting);
  });
}

// Whoever posts from here on rings; what was posted before is among the busy.
void Wire::sleep() {
  asleep_ = true;
  int wait_ms = -1;
  {
    const std::lock_guard lock(mutex_);
    take_postings();
    for (const QueuePair* waiting : busy_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          waiting->again_at - std::chrono::steady_clock::now());
      const int left_ms = std::max(0, static_cast<int>(left.count()));
      wait_ms = wait_ms < 0 ? left_ms : std::min(wait_ms, left_ms);
    }
  }
  pollfd bell{bell_.get(), POLLIN, 0};
  if (!stop_) ::poll(&bell, 1, wait_ms);
  asleep_ = false;
  eventfd_t rings;
  ::eventfd_read(bell_.get(), &rings);
}

bool Wire::chance(double share) {
  return std::uniform_real_distribution<double>(0, 1)(random_) < share;
}

}  // namespace rdmacoll::fake
