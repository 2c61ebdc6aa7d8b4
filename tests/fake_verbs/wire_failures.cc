// Wire: answers that do not come, requests that are refused, and queue pairs that end.
#include <algorithm>
#include <utility>

#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/wire.h"

namespace rdmacoll::fake {
namespace {

constexpr int kForEver = 7;  // as a count of retries

ibv_wc_opcode opcode_of(const Message& message) {
  if (message.opcode == IBV_WR_SEND) return IBV_WC_SEND;
  return message.is_read() ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE;
}

void release_address(const Message& message) {
  if (message.to != nullptr) --message.to->messages;
}

}  // namespace

void Wire::no_answer(QueuePair& from) {
  ++counts_.retries;
  // With its own port down, some devices say so and some go on trying.
  if (!registry_.port_of(from).active() && chance(0.5)) return end(from, IBV_WC_LOC_QP_OP_ERR);
  if (!from.retries_left.has_value()) from.retries_left = from.attributes.retry_cnt;
  if (*from.retries_left == 0) return end(from, IBV_WC_RETRY_EXC_ERR);
  if (*from.retries_left != kForEver) --*from.retries_left;
  from.again_at = now_ + std::chrono::milliseconds(spec_.retry_interval_ms);
}

void Wire::not_ready(QueuePair& from) {
  ++counts_.receivers_not_ready;
  if (!from.not_ready_left.has_value()) from.not_ready_left = from.attributes.rnr_retry;
  if (*from.not_ready_left == 0) return refuse(from, from.begun, IBV_WC_RNR_RETRY_EXC_ERR);
  if (*from.not_ready_left != kForEver) --*from.not_ready_left;
  from.again_at = now_ + std::chrono::milliseconds(spec_.not_ready_interval_ms);
}

// The message with this index fails; those before it have not. What the other side refuses ends
// that side, too.
void Wire::refuse(QueuePair& from, size_t index, ibv_wc_status status) {
  if (!finish(from, index)) return;
  QueuePair* at = registry_.partner(from);
  end(from, status);
  const bool theirs = status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR;
  if (!theirs || at == nullptr || at == &from) return;
  if (chance(0.5)) {  // some devices also say it at the other side
    ibv_async_event event{};
    event.event_type = IBV_EVENT_QP_ACCESS_ERR;
    event.element.qp = at;
    static_cast<Context*>(at->context)->events.push(event);
  }
  end(*at);
}

// `first`: of the oldest message that was not acknowledged.
void Wire::end(QueuePair& queue_pair, ibv_wc_status first) {
  if (queue_pair.current == IBV_QPS_ERR || !queue_pair.lives()) return;
  leave(queue_pair);
  queue_pair.current = IBV_QPS_ERR;
  if (first != IBV_WC_WR_FLUSH_ERR && !queue_pair.sends.empty()) {
    complete(queue_pair, queue_pair.sends.front(), first);
    release_address(queue_pair.sends.front());
    queue_pair.sends.pop_front();
  }
  flush(queue_pair);
}

void Wire::vanish(QueuePair& queue_pair) {
  leave(queue_pair);
  std::for_each(queue_pair.sends.begin(), queue_pair.sends.end(), release_address);
  queue_pair.sends.clear();
  queue_pair.receives.clear();
}

// What it has sent without an answer may arrive, or not; what is sent to it finds nobody.
void Wire::leave(QueuePair& queue_pair) {
  if (queue_pair.qp_type != IBV_QPT_RC) return;
  deliver_acknowledged(queue_pair);
  for (size_t i = 0; i < queue_pair.begun; ++i) {
    Message& message = queue_pair.sends[i];
    if (!message.sent() || message.is_read() || chance(0.5)) break;
    bool registered = true;
    while (registered && !message.landed()) registered = land(queue_pair, message);
    if (!registered) break;
    if (!message.delivered) deliver(message);
  }
  rewind(queue_pair);
  if (QueuePair* other = registry_.partner(queue_pair)) {
    deliver_acknowledged(*other);
    rewind(*other);
  }
}

void Wire::deliver_acknowledged(QueuePair& from) {
  while (from.begun > 0 && from.sends.front().acknowledged) {
    Message& first = from.sends.front();
    while (!first.landed()) require(land(from, first), "acknowledged data cannot land");
    if (!first.delivered) deliver(first);
    retire(from);
  }
}

// Messages begin anew, should there ever be somebody to take them.
void Wire::rewind(QueuePair& from) {
  for (; from.begun > 0; --from.begun) {
    Message& last = from.sends[from.begun - 1];
    if (last.receive.has_value() && !last.delivered) {
      last.at->receives.push_front(std::move(*last.receive));
    }
    last.receive.reset();
    last.unsent.clear();
    last.on_the_wire.clear();
    last.delivered = false;
  }
}

void Wire::settle() {
  for (const auto& queue_pair : registry_.queue_pairs) {
    if (queue_pair->lives() && queue_pair->qp_type == IBV_QPT_RC) {
      deliver_acknowledged(*queue_pair);
    }
  }
}

void Wire::complete(QueuePair& from, const Message& message, ibv_wc_status status) {
  Completion completion;
  completion.queue_pair = &from;
  completion.sends_done = message.position;
  completion.wc.wr_id = message.id;
  completion.wc.status = status;
  completion.wc.opcode = opcode_of(message);
  completion.wc.byte_len = static_cast<uint32_t>(message.bytes);
  completion.wc.qp_num = from.qp_num;
  static_cast<CompletionQueue*>(from.send_cq)->push(completion);
}

// Signalled or not: all that is left is reported.
void Wire::flush(QueuePair& queue_pair) {
  for (const Message& message : queue_pair.sends) {
    complete(queue_pair, message, IBV_WC_WR_FLUSH_ERR);
    release_address(message);
  }
  queue_pair.sends.clear();
  for (const Receive& receive : queue_pair.receives) {
    Completion completion;
    completion.queue_pair = &queue_pair;
    completion.receive = true;
    completion.wc.wr_id = receive.id;
    completion.wc.status = IBV_WC_WR_FLUSH_ERR;
    completion.wc.qp_num = queue_pair.qp_num;
    static_cast<CompletionQueue*>(queue_pair.recv_cq)->push(completion);
  }
  queue_pair.receives.clear();
}

}  // namespace rdmacoll::fake
