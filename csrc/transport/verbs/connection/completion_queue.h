// CompletionQueue: where the device tells of all queue pairs of the transport, and how a thread
// sleeps until it does. Floor: transport/verbs/connection. Thread: poll(), arm() and disarm() the
// driver; open() and reserve() set-up; wake() any.
#pragma once

#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/memory/unique_fd.h"
#include "csrc/memory/wake_fd.h"
#include "csrc/transport/verbs/device/device.h"

namespace rdmacoll::verbs {

class CompletionQueue {
 public:
  // Both outlive this.
  CompletionQueue(const VerbsTable& table, const Device& device) : table_(table), device_(device) {}
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // What sleeping needs; reserve() makes the queue.
  Status open();
  // Places for all that the queues of so many peers can complete at once.
  Status reserve(int64_t peers, int64_t queue_pairs_per_peer);
  // Not by the destructor: a forked child leaves the device to its parent.
  void close();

  bool is_open() const { return queue_ != nullptr; }
  ibv_cq* get() const { return queue_; }
  // How many of at most `most` were taken.
  int poll(ibv_wc* completions, int most) { return table_.poll_cq(queue_, most, completions); }

  // The descriptor that becomes readable with the next completion, or by wake().
  int arm() {
    table_.req_notify_cq(queue_, 0);
    return wake_set_.get();
  }
  void disarm();
  void wake() const { wake_fd_.ring(); }

 private:
  const VerbsTable& table_;
  const Device& device_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  int capacity_ = 0;
  WakeFd wake_fd_;
  UniqueFd wake_set_;  // epoll: channel and wake_fd_
};

}  // namespace rdmacoll::verbs
