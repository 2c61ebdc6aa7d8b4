// Group: submission and the driver's round. How a group fails is in group_failure.cc.
// Floor: engine/group. Thread: see group.h.
#include "csrc/engine/group/group.h"

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

std::vector<std::vector<Port>> make_ports(const Layout& layout, const std::vector<Link>& links,
                                          const Region& block, uint32_t rank) {
  std::vector<std::vector<Port>> ports(kChannels);
  for (uint8_t channel = 0; channel < kChannels; ++channel) {
    ports[channel].reserve(links.size());
    for (uint32_t peer = 0; peer < links.size(); ++peer) {
      ports[channel].emplace_back(layout, links[peer], block, channel, rank, peer);
    }
  }
  return ports;
}

}  // namespace

Group::Group(const Clock& clock, GroupBlocks blocks, const Heap* heap, const Config& config)
    : clock_(clock),
      to_time_of_day_ns_(clock.to_time_of_day_ns()),
      rank_(blocks.rank),
      layout_(blocks.layout),
      block_(blocks.mine),
      links_(std::move(blocks.links)),
      ports_(make_ports(layout_, links_, block_, rank_)),
      executor_(layout_, rank_, block_.base, links_, ports_, heap, config, clock),
      p2p_(rank_, layout_, ports_, config, clock, log_),
      call_log_(block_.base + layout_.call_log().own),
      call_logs_(layout_, rank_, block_, links_),
      comparison_(call_logs_, world()),
      shrink_states_(clock, layout_, block_, links_),
      heartbeats_(layout_, block_, links_, config.stall_timeout_ms * 1'000'000) {
  RDMACOLL_CHECK(block_.bytes >= layout_.total_bytes());
}

std::optional<MessageCall> Group::oldest_message() const {
  std::optional<MessageCall> message = p2p_.oldest();
  if (message) message->started_ns = time_of_day_ns(message->started_ns);
  return message;
}

Group::~Group() {
  while (CollectiveOp* op = spares_.take()) delete op;
}

std::unique_ptr<CollectiveOp> Group::blank() {
  CollectiveOp* spare = spares_.take();
  return spare != nullptr ? std::unique_ptr<CollectiveOp>(spare) : std::make_unique<CollectiveOp>();
}

template <typename Op>
Status Group::enqueue(std::vector<Op>& submissions, Op op) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.ok()) return failure_;
  submissions.push_back(std::move(op));
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  has_new_.store(true, std::memory_order_release);
  return Status();
}

Status Group::submit(std::unique_ptr<CollectiveOp> op) {
  return enqueue(new_collectives_, std::move(op));
}
Status Group::submit(SendOp op) { return enqueue(new_sends_, std::move(op)); }
Status Group::submit(RecvOp op) { return enqueue(new_recvs_, std::move(op)); }

void Group::submit(ShrinkStateRead op) {
  std::lock_guard<std::mutex> lock(mutex_);
  RDMACOLL_CHECK(!new_shrink_read_);
  new_shrink_read_ = std::move(op);
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  has_new_.store(true, std::memory_order_release);
}

void Group::waits_for_own(Work& work) {
  work.set_waited_for();
  has_new_.store(true, std::memory_order_release);
}

bool Group::advance(std::vector<Completion>& finished) {
  const size_t finished_before = finished.size();
  if (has_new_.load(std::memory_order_acquire)) take_submissions(finished);
  bool moved = advance_collectives(finished) | shrink_states_.advance(finished);
  if (!p2p_.idle() && failing_.ok()) moved |= p2p_.advance(finished);
  if (call_log_.has_message() && p2p_.idle()) call_log_.set_message(std::nullopt);
  const size_t ended = finished.size() - finished_before;
  in_flight_.fetch_sub(ended, std::memory_order_release);
  return moved || ended > 0;
}

void Group::take_submissions(std::vector<Completion>& finished) {
  Status failure;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    has_new_.store(false, std::memory_order_relaxed);
    failure = failure_;
    for (auto& op : new_collectives_) {
      op->operation.sequence = next_sequence_++;
      // Ranks that disagree about the order disagree about the number.
      op->operation.signature ^= static_cast<uint32_t>(op->operation.sequence * 0x85EBCA6Bu);
      op->call = op->operation.call();
      op->call.started_ns = time_of_day_ns(op->started_ns);
      op->record = log_.collective(op->call, op->started_ns);
      queue_.push(std::move(op));
    }
    for (SendOp& op : new_sends_) p2p_.send(std::move(op), finished);
    for (RecvOp& op : new_recvs_) p2p_.recv(std::move(op), finished);
    p2p_.withdraw_own(finished);
    if (new_shrink_read_) shrink_states_.begin(std::move(*new_shrink_read_));
    new_shrink_read_.reset();
    new_collectives_.clear();
    new_sends_.clear();
    new_recvs_.clear();
  }
  if (!failure.ok()) fail_in_flight(failure, finished);
}

bool Group::advance_collectives(std::vector<Completion>& finished) {
  if (failed_) return recall(finished);
  if (!failing_.ok()) return conclude(finished);
  bool moved = false;
  while (true) {
    if (current_ == nullptr) {
      if (queue_.empty()) return moved;
      current_ = queue_.pop();
      call_log_.begin(current_->call);
      executor_.start(current_->operation);
      log_.start_collective(current_->record, current_->call.root, current_->started_ns);
      moved = true;
    }
    moved |= executor_.advance();
    if (!executor_.status().ok()) {
      fail(executor_.status(), finished);
      return true;
    }
    if (executor_.running()) return moved;
    call_log_.end(current_->operation.sequence);
    log_.end_collective(current_->record, true);
    finished.push_back({std::move(current_->work), Status()});
    spares_.keep(current_.release());
  }
}

}  // namespace rdmacoll
