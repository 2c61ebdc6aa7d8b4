// CompletionQueue: completions in order, their notification, and the places in work queues that
// taking them gives back. It has a lock of its own: whoever polls is synchronised with what the
// device has completed here, and with nothing else that it does.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

#include "csrc/transport/verbs/abi/verbs.h"
#include "tests/fake_verbs/event_queue.h"

namespace rdmacoll::fake {

struct QueuePair;
struct CompletionQueue;

struct CompletionChannel : ibv_comp_channel {
  EventQueue<CompletionQueue*> events;
};

struct Completion {
  ibv_wc wc{};
  QueuePair* queue_pair = nullptr;
  bool receive = false;
  bool solicited = false;
  uint64_t sends_done = 0;  // of the queue pair, up to and with this one
};

struct CompletionQueue : ibv_cq {
  // Misuse when it is full: what a device does then is to lose completions.
  void push(const Completion& completion);
  int poll(int entries, ibv_wc* completions);
  int notify(bool solicited_only);
  int resize(int entries);
  void forget(const QueuePair* queue_pair);

  std::atomic<bool> destroyed{false};
  int queue_pairs = 0;  // that complete here; under the network's lock
  std::atomic<unsigned> events_taken{0};
  std::atomic<unsigned> events_acked{0};

 private:
  enum class Armed { No, Solicited, Any };

  std::mutex queue_mutex_;
  std::deque<Completion> entries_;
  Armed armed_ = Armed::No;
};

}  // namespace rdmacoll::fake
