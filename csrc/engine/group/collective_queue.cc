// CollectiveQueue. Floor: engine/group. Thread: see collective_queue.h.
#include "csrc/engine/group/collective_queue.h"

#include <algorithm>

namespace rdmacoll {

CollectiveQueue::CollectiveQueue(PeerLinks& links, Executor& executor, CallLog& call_log,
                                 FlightLog& flight_log, int64_t to_time_of_day_ns)
    : links_(links),
      executor_(executor),
      call_log_(call_log),
      flight_log_(flight_log),
      to_time_of_day_ns_(to_time_of_day_ns) {}

CollectiveQueue::~CollectiveQueue() {
  while (CollectiveOp* op = spares_.take()) delete op;
}

std::unique_ptr<CollectiveOp> CollectiveQueue::blank() {
  CollectiveOp* spare = spares_.take();
  return spare != nullptr ? std::unique_ptr<CollectiveOp>(spare) : std::make_unique<CollectiveOp>();
}

void CollectiveQueue::push(std::unique_ptr<CollectiveOp> op) {
  op->operation.sequence = next_sequence_++;
  // Ranks that disagree about the order disagree about the number.
  op->operation.signature ^= static_cast<uint32_t>(op->operation.sequence * 0x85EBCA6Bu);
  op->call = op->operation.call();
  op->call.started_ns = op->started_ns + to_time_of_day_ns_;
  op->record = flight_log_.collective(op->call, op->started_ns);
  queue_.push(std::move(op));
}

void CollectiveQueue::take_next() {
  current_ = queue_.pop();
  call_log_.begin(current_->call);
  flight_log_.start_collective(current_->record, current_->call.root, current_->started_ns);
  const Plan& plan = *current_->operation.plan;
  if (executor_.has_met(plan)) return;
  for (const uint16_t peer : plan.peers) links_.want(peer);
}

// False: not all peers are met.
bool CollectiveQueue::start() {
  if (!executor_.has_met(*current_->operation.plan)) return false;
  executor_.start(current_->operation);
  return runs_ = true;
}

bool CollectiveQueue::waits_to_meet(uint32_t peer) const {
  if (current_ == nullptr || runs_ || links_.at(peer) != nullptr) return false;
  const std::vector<uint16_t>& peers = current_->operation.plan->peers;
  return std::find(peers.begin(), peers.end(), peer) != peers.end();
}

void CollectiveQueue::end_current(std::vector<Completion>& finished) {
  runs_ = false;
  call_log_.end(current_->operation.sequence);
  flight_log_.end_collective(current_->record, true);
  finished.push_back({std::move(current_->work), Status()});
  spares_.keep(current_.release());
}

void CollectiveQueue::fail_queued(const Status& status, std::vector<Completion>& finished) {
  while (!queue_.empty()) {
    const auto op = queue_.pop();
    flight_log_.end_collective(op->record, false);
    finished.push_back({std::move(op->work), status});
  }
}

void CollectiveQueue::fail_current(const Status& status, std::vector<Completion>& finished) {
  flight_log_.end_collective(current_->record, false);
  finished.push_back({std::move(current_->work), status});
  current_.reset();
  runs_ = false;
  executor_.stop();
}

}  // namespace rdmacoll
