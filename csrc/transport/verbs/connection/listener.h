// ConnectionListener: the thread that answers while nobody drives: it takes datagrams (UD) from
// processes that greet, and the device's asynchronous events. It sleeps in between; no data passes
// through it. An error, as when the link is down, ends a queue pair: the listener starts it again.
// Floor: transport/verbs/connection. Thread: open, start and the end one; send() any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/memory/shared_segment.h"
#include "csrc/memory/wake_fd.h"
#include "csrc/transport/verbs/device/device.h"

namespace rdmacoll::verbs {

class ConnectionListener {
 public:
  static constexpr size_t kDatagramBytes = 256;  // fits into the smallest MTU

  // What to do, in the listener's thread.
  struct Duties {
    std::function<void(const std::byte* data, size_t bytes)> datagram;
    std::function<void(const ibv_async_event& event)> event;
    std::function<void(const Status& why)> closed;  // nobody can be heard or told any more
  };

  // Takes datagrams from now on, and keeps them until start().
  static Result<std::unique_ptr<ConnectionListener>> open(const VerbsTable& table,
                                                          const Device& device);
  // Ends the thread.
  ~ConnectionListener();
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  // Where others send to.
  uint32_t number() const { return queue_pair_->qp_num; }
  uint32_t key() const { return key_; }

  Status start(Duties duties);
  // May lose the datagram, as the network does.
  void send(ibv_ah* to, uint32_t number, uint32_t key, const void* data, size_t bytes);

 private:
  ConnectionListener(const VerbsTable& table, const Device& device)
      : table_(table), device_(device) {}
  Status open_queues();
  Status create_queue_pair();
  Status start_queue_pair();
  bool post_receive(size_t index);
  void run();
  bool drain_completions();  // whether there may be more
  void take_send(const ibv_wc& completion);
  void take_receive(const ibv_wc& completion);
  void flush();
  bool flushed();
  void open_again();
  void take_events();
  std::byte* receive_buffer(size_t index) const;
  std::byte* send_buffer(size_t index) const;

  const VerbsTable& table_;
  const Device& device_;
  uint32_t key_ = 0;
  std::unique_ptr<SharedSegment> memory_;
  ibv_mr* registered_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completions_ = nullptr;
  ibv_qp* queue_pair_ = nullptr;
  WakeFd stop_;
  Duties duties_;

  size_t free_receives_ = 0;  // the thread's

  std::mutex mutex_;  // the fields below
  std::vector<size_t> free_sends_;
  bool broken_ = false;  // until what was posted has come back, and the queue pair starts again

  std::thread thread_;
};

}  // namespace rdmacoll::verbs
