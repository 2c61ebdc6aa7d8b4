// CompletionQueue. Floor: transport/verbs/connection. Thread: see completion_queue.h.
#include "csrc/transport/verbs/connection/completion_queue.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "csrc/transport/verbs/connection/queue_pair.h"
#include "csrc/transport/verbs/device/errors.h"

namespace rdmacoll::verbs {
namespace {

constexpr int kFirstCapacity = 1 << 12;

Status add_to_set(const UniqueFd& set, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status();
  return Status::from_errno("watching a descriptor", errno);
}

}  // namespace

Status CompletionQueue::open() {
  Result<WakeFd> wake_fd = WakeFd::create();
  if (!wake_fd.ok()) return wake_fd.status();
  wake_fd_ = wake_fd.take();
  wake_set_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!wake_set_.valid()) return Status::from_errno("epoll_create", errno);
  channel_ = table_.create_comp_channel(device_.context());
  if (channel_ == nullptr) return call_error("creating a completion channel", errno, device_);
  const int flags = ::fcntl(channel_->fd, F_GETFL);
  if (flags < 0 || ::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return Status::from_errno("fcntl", errno);
  }
  RDMACOLL_RETURN_IF_ERROR(add_to_set(wake_set_, channel_->fd));
  return add_to_set(wake_set_, wake_fd_.get());
}

Status CompletionQueue::reserve(int64_t peers, int64_t queue_pairs_per_peer) {
  const int64_t per_queue_pair = kSendDepth + kReceiveDepth + kReceiveBatch;
  const int64_t needed = peers * queue_pairs_per_peer * per_queue_pair;
  if (needed <= capacity_) return Status();
  const int64_t most = device_.limits().max_cqe;
  if (needed > most) {
    return Status(StatusCode::Unsupported, device_.describe() + " has completion queues of " +
                                               std::to_string(most) + " entries, too few for " +
                                               std::to_string(peers) + " peers with " +
                                               std::to_string(queue_pairs_per_peer) +
                                               " queue pairs each; lower RDMACOLL_IB_QPS");
  }
  const int64_t capacity =
      std::min(most, std::max<int64_t>({needed, 2 * int64_t{capacity_}, kFirstCapacity}));
  const int entries = static_cast<int>(capacity);
  if (queue_ == nullptr) {
    queue_ = table_.create_cq(device_.context(), entries, nullptr, channel_, 0);
    if (queue_ == nullptr) {
      return call_error("creating a completion queue of " + std::to_string(entries) + " entries",
                        errno, device_);
    }
  } else if (const int error = table_.resize_cq(queue_, entries); error != 0) {
    return call_error("growing the completion queue to " + std::to_string(entries) + " entries",
                      error, device_);
  }
  capacity_ = entries;
  return Status();
}

void CompletionQueue::close() {
  if (queue_ != nullptr) table_.destroy_cq(std::exchange(queue_, nullptr));
  if (channel_ != nullptr) table_.destroy_comp_channel(std::exchange(channel_, nullptr));
}

void CompletionQueue::disarm() {
  ibv_cq* queue = nullptr;
  void* user = nullptr;
  while (table_.get_cq_event(channel_, &queue, &user) == 0) table_.ack_cq_events(queue, 1);
  wake_fd_.drain();
}

}  // namespace rdmacoll::verbs
