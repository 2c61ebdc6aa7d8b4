// Wire: carries what was posted, in a thread of its own, by small moves in random order: what the
// standard leaves open happens in every way. Of one connection messages begin, are acknowledged and
// are delivered in order; in between the pieces of several of them come and go as they like, so a
// message may be acknowledged before it lands, and lands before its completion, or the next one's,
// is shown to the receiver. Datagrams overtake each other and get lost.
//
// The data path into it (submit) is one-directional: whoever posts is not synchronised with what
// the device has done so far. Only completion queues and events synchronise.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "csrc/memory/unique_fd.h"
#include "tests/fake_verbs/registry.h"

namespace rdmacoll::fake {

// What one call has posted to a queue pair.
struct Posting {
  QueuePair* queue_pair = nullptr;
  std::vector<Message> sends;
  std::vector<Receive> receives;
  Posting* before = nullptr;
};

struct WireCounts {
  uint64_t messages = 0;  // delivered on connections
  uint64_t receivers_not_ready = 0;
  uint64_t retries = 0;
  uint64_t datagrams = 0;
  uint64_t datagrams_lost = 0;
};

class Wire {
 public:
  Wire(Registry& registry, const NetworkSpec& spec);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Any thread, without a lock.
  void submit(std::unique_ptr<Posting> posting);

  // The lock of the network: of the registry and of all that follows.
  class Hold {
   public:
    explicit Hold(Wire& wire);

   private:
    std::unique_lock<std::mutex> lock_;
  };

  // Into the error state: what is in its queues is flushed.
  void end(QueuePair& queue_pair) { end(queue_pair, IBV_WC_WR_FLUSH_ERR); }
  // It is there no more (destroyed, reset, killed), and neither is what is in its queues.
  void vanish(QueuePair& queue_pair);
  // What was acknowledged has landed.
  void settle();
  void set_datagram_loss(double share) { datagram_loss_ = share; }
  const WireCounts& counts() const { return counts_; }

 private:
  struct Datagram {
    Port* to;
    uint32_t number;
    uint32_t key;
    uint32_t from;
    uint64_t not_before;
    std::vector<std::byte> data;
  };

  // The thread (wire.cc).
  void run();
  void take_postings();
  void take(Posting& posting);
  bool move();
  bool stands_still(const QueuePair& queue_pair) const;
  bool ready(const QueuePair& queue_pair) const;
  void sleep();
  uint64_t random(uint64_t below) { return random_() % below; }
  bool chance(double share);

  // Connections (wire_rc.cc).
  void advance(QueuePair& from);
  bool may_begin(const QueuePair& from) const;
  void begin(QueuePair& from);
  void begin_at(QueuePair& from, QueuePair& at);
  void cut(Message& message);
  Message* begun_with(QueuePair& from, std::vector<Piece> Message::* pieces);
  void fetch_some(QueuePair& from);
  void land_some(QueuePair& from);
  bool fetch(QueuePair& from, Message& message);
  bool land(QueuePair& from, Message& message);
  void acknowledge_next(QueuePair& from);
  void deliver_next(QueuePair& from);
  void acknowledge(QueuePair& from, Message& message);
  void deliver(Message& message);
  void retire(QueuePair& from);
  bool finish(QueuePair& from, size_t count);

  // Failures (wire_failures.cc).
  void no_answer(QueuePair& from);
  void not_ready(QueuePair& from);
  void refuse(QueuePair& from, size_t index, ibv_wc_status status);
  void end(QueuePair& queue_pair, ibv_wc_status first);
  void leave(QueuePair& queue_pair);
  void deliver_acknowledged(QueuePair& from);
  void rewind(QueuePair& from);
  void complete(QueuePair& from, const Message& message, ibv_wc_status status);
  void flush(QueuePair& queue_pair);

  // Datagrams (wire_ud.cc).
  void send_datagram(QueuePair& from);
  bool move_datagram();
  void receive_datagram(const Datagram& datagram);

  Registry& registry_;
  const NetworkSpec spec_;
  std::mutex mutex_;
  std::atomic<int> callers_{0};  // that wait for the mutex: the thread lets them

  std::mt19937_64 random_;
  double datagram_loss_;
  WireCounts counts_;
  uint64_t moves_ = 0;
  std::chrono::steady_clock::time_point now_{};
  std::vector<QueuePair*> busy_;  // something is in their send queue
  std::vector<Datagram> datagrams_;

  std::atomic<Posting*> postings_{nullptr};
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stop_{false};
  UniqueFd bell_;
  std::thread thread_;
};

}  // namespace rdmacoll::fake
