// ConnectionListener: its queues and its thread. Floor: transport/verbs/connection.
#include "csrc/transport/verbs/connection/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/transport/verbs/device/errors.h"

namespace rdmacoll::verbs {
namespace {

constexpr size_t kReceives = 512;  // handshakes that may wait for the thread
constexpr size_t kSends = 64;
constexpr size_t kGrhBytes = 40;  // in front of every received datagram
constexpr size_t kBufferBytes = 320;
constexpr uint64_t kSendTag = 1u << 20;  // in work request ids: a send buffer's index
static_assert(ConnectionListener::kDatagramBytes + kGrhBytes <= kBufferBytes);

bool make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

Result<std::unique_ptr<ConnectionListener>> ConnectionListener::open(const VerbsTable& table,
                                                                     const Device& device) {
  std::unique_ptr<ConnectionListener> listener(new ConnectionListener(table, device));
  RDMACOLL_RETURN_IF_ERROR(listener->open_queues());
  RDMACOLL_RETURN_IF_ERROR(listener->create_queue_pair());
  RDMACOLL_RETURN_IF_ERROR(listener->start_queue_pair());
  return listener;
}

Status ConnectionListener::open_queues() {
  if (::getrandom(&key_, sizeof(key_), 0) != sizeof(key_)) {
    return Status::from_errno("getrandom", errno);
  }
  key_ &= 0x7FFFFFFF;  // the upper half is the privileged ones'
  Result<WakeFd> stop = WakeFd::create();
  if (!stop.ok()) return stop.status();
  stop_ = stop.take();
  auto memory = SharedSegment::create((kReceives + kSends) * kBufferBytes);
  if (!memory.ok()) return memory.status();
  memory_ = std::make_unique<SharedSegment>(memory.take());
  registered_ =
      table_.reg_mr_iova2(device_.pd(), memory_->data(), memory_->bytes(),
                          reinterpret_cast<uint64_t>(memory_->data()), IBV_ACCESS_LOCAL_WRITE);
  if (registered_ == nullptr) return registration_error(errno, memory_->bytes(), device_);
  channel_ = table_.create_comp_channel(device_.context());
  if (channel_ == nullptr) return call_error("creating a completion channel", errno, device_);
  if (!make_nonblocking(channel_->fd) || !make_nonblocking(device_.context()->async_fd)) {
    return Status::from_errno("fcntl", errno);
  }
  completions_ = table_.create_cq(device_.context(), kReceives + kSends, nullptr, channel_, 0);
  if (completions_ == nullptr) return call_error("creating a completion queue", errno, device_);
  for (size_t i = 0; i < kSends; ++i) free_sends_.push_back(i);
  return Status();
}

Status ConnectionListener::create_queue_pair() {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = completions_;
  attributes.recv_cq = completions_;
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap.max_send_wr = kSends;
  attributes.cap.max_recv_wr = kReceives;
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 1;
  queue_pair_ = table_.create_qp(device_.pd(), &attributes);
  if (queue_pair_ != nullptr) return Status();
  return call_error("creating a datagram queue pair", errno, device_);
}

// From RESET, with all receives posted.
Status ConnectionListener::start_queue_pair() {
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_INIT;
  state.port_num = device_.port();
  state.qkey = key_;
  int error = table_.modify_qp(queue_pair_, &state,
                               IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  state.qp_state = IBV_QPS_RTR;
  if (error == 0) error = table_.modify_qp(queue_pair_, &state, IBV_QP_STATE);
  state.qp_state = IBV_QPS_RTS;
  if (error == 0) error = table_.modify_qp(queue_pair_, &state, IBV_QP_STATE | IBV_QP_SQ_PSN);
  if (error != 0) return call_error("starting a datagram queue pair", error, device_);
  for (size_t i = 0; i < kReceives; ++i) {
    if (!post_receive(i)) return call_error("posting receives", errno, device_);
  }
  return Status();
}

std::byte* ConnectionListener::receive_buffer(size_t index) const {
  return memory_->data() + index * kBufferBytes;
}

std::byte* ConnectionListener::send_buffer(size_t index) const {
  return memory_->data() + (kReceives + index) * kBufferBytes;
}

bool ConnectionListener::post_receive(size_t index) {
  ibv_sge piece{reinterpret_cast<uint64_t>(receive_buffer(index)), kBufferBytes, registered_->lkey};
  ibv_recv_wr request{};
  request.wr_id = index;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return table_.post_recv(queue_pair_, &request, &bad) == 0;
}

void ConnectionListener::send(ibv_ah* to, uint32_t number, uint32_t key, const void* data,
                              size_t bytes) {
  RDMACOLL_CHECK(bytes <= kDatagramBytes);
  const std::lock_guard lock(mutex_);
  if (free_sends_.empty() || broken_) return;
  const size_t index = free_sends_.back();
  std::memcpy(send_buffer(index), data, bytes);
  ibv_sge piece{reinterpret_cast<uint64_t>(send_buffer(index)), static_cast<uint32_t>(bytes),
                registered_->lkey};
  ibv_send_wr request{};
  request.wr_id = kSendTag | index;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.ud.ah = to;
  request.wr.ud.remote_qpn = number;
  request.wr.ud.remote_qkey = key;
  ibv_send_wr* bad = nullptr;
  if (table_.post_send(queue_pair_, &request, &bad) == 0) free_sends_.pop_back();
}

Status ConnectionListener::start(Duties duties) {
  duties_ = std::move(duties);
  const int error = table_.req_notify_cq(completions_, 0);
  if (error != 0) return call_error("asking for completion events", error, device_);
  thread_ = std::thread([this] { run(); });
  return Status();
}

// A flood of datagrams must not keep the thread from its other duties, nor from its end. So it
// looks at those again after as many completions as its queues can hold.
void ConnectionListener::run() {
  bool more = drain_completions();
  while (true) {
    pollfd waited[] = {{stop_.get(), POLLIN, 0},
                       {channel_->fd, POLLIN, 0},
                       {device_.context()->async_fd, POLLIN, 0}};
    if (::poll(waited, std::size(waited), more ? 0 : -1) < 0 && errno != EINTR) return;
    if (waited[0].revents != 0) return;
    if (waited[1].revents != 0) {
      ibv_cq* queue = nullptr;
      void* user = nullptr;
      if (table_.get_cq_event(channel_, &queue, &user) == 0) table_.ack_cq_events(queue, 1);
      table_.req_notify_cq(completions_, 0);
      more = true;
    }
    if (more) more = drain_completions();
    if (waited[2].revents != 0) take_events();
  }
}

bool ConnectionListener::drain_completions() {
  ibv_wc completion;
  size_t taken = 0;
  while (taken < kReceives + kSends && table_.poll_cq(completions_, 1, &completion) == 1) {
    ++taken;
    if (completion.status != IBV_WC_SUCCESS) flush();
    if (completion.wr_id & kSendTag) {
      take_send(completion);
    } else {
      take_receive(completion);
    }
  }
  if (flushed()) open_again();
  return taken == kReceives + kSends;
}

void ConnectionListener::take_send(const ibv_wc& completion) {
  const std::lock_guard lock(mutex_);
  free_sends_.push_back(completion.wr_id & ~kSendTag);
}

void ConnectionListener::take_receive(const ibv_wc& completion) {
  if (completion.status == IBV_WC_SUCCESS && completion.byte_len > kGrhBytes) {
    duties_.datagram(receive_buffer(completion.wr_id) + kGrhBytes, completion.byte_len - kGrhBytes);
  }
  if (broken_) {
    ++free_receives_;
  } else {
    post_receive(completion.wr_id);
  }
}

// After an error: all that was posted comes back, and nothing more is posted.
void ConnectionListener::flush() {
  if (broken_) return;
  const std::lock_guard lock(mutex_);
  broken_ = true;
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_ERR;
  table_.modify_qp(queue_pair_, &state, IBV_QP_STATE);
}

bool ConnectionListener::flushed() {
  const std::lock_guard lock(mutex_);
  return broken_ && free_receives_ == kReceives && free_sends_.size() == kSends;
}

void ConnectionListener::open_again() {
  free_receives_ = 0;
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_RESET;
  const int error = table_.modify_qp(queue_pair_, &state, IBV_QP_STATE);
  const Status opened = error == 0 ? start_queue_pair()
                                   : call_error("resetting a datagram queue pair", error, device_);
  if (!opened.ok()) return duties_.closed(opened);
  const std::lock_guard lock(mutex_);
  broken_ = false;
}

void ConnectionListener::take_events() {
  ibv_async_event event;
  while (table_.get_async_event(device_.context(), &event) == 0) {
    duties_.event(event);
    table_.ack_async_event(&event);
  }
}

ConnectionListener::~ConnectionListener() {
  if (thread_.joinable()) {
    stop_.ring();
    thread_.join();
  }
  if (queue_pair_ != nullptr) table_.destroy_qp(queue_pair_);
  if (completions_ != nullptr) table_.destroy_cq(completions_);
  if (channel_ != nullptr) table_.destroy_comp_channel(channel_);
  if (registered_ != nullptr) table_.dereg_mr(registered_);
}

}  // namespace rdmacoll::verbs
