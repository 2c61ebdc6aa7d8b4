// Port: the hot path of every message. Floor: engine. Thread: the driver.
#include "csrc/engine/port.h"

#include "csrc/base/check.h"

namespace rdmacoll {

Port::Port(const Layout& layout, const Link& link, const Region& my_block, uint8_t channel,
           uint32_t my_rank, uint32_t peer_rank)
    : link_(link),
      channel_(channel),
      has_slots_(!is_stage_channel(channel)),
      depth_(layout.depth(channel)),
      slot_bytes_(layout.slot_bytes()),
      lines_(reinterpret_cast<Line*>(my_block.base + layout.lines(channel, peer_rank))),
      credit_(reinterpret_cast<Line*>(my_block.base + layout.credit(channel, peer_rank))),
      slots_(my_block.base + layout.slots(channel, peer_rank)),
      bounce_(my_block.base + layout.bounce(channel, peer_rank)),
      my_region_(my_block.id),
      peer_lines_(layout.lines(channel, my_rank)),
      peer_credit_(layout.credit(channel, my_rank)),
      peer_slots_(layout.slots(channel, my_rank)) {
  if (link_.mapped == nullptr) tickets_.resize(depth_);
}

bool Port::can_send() const {
  if (sent_ - credit_->counter.load(std::memory_order_acquire) >= depth_) return false;
  return tickets_.empty() || link_.transport->done(tickets_[outgoing_index()]);
}

std::byte* Port::outgoing(uint64_t bytes) {
  if (travels_inline(bytes)) return header_.inline_data;
  RDMACOLL_CHECK(bytes <= slot_bytes_);
  const uint64_t offset = outgoing_index() * slot_bytes_;
  return link_.mapped != nullptr ? link_.mapped + peer_slots_ + offset : bounce_ + offset;
}

bool Port::announce(uint32_t signature, uint64_t bytes, uint32_t word) {
  const uint32_t index = outgoing_index();
  const bool put_due = link_.mapped == nullptr && has_slots_ && bytes > kInlineBytes;
  if (put_due && !put_posted_) {
    const uint64_t offset = index * slot_bytes_;
    const Posted posted =
        link_.transport->put(link_.peer, channel_, {bounce_ + offset, bytes, my_region_},
                             remote(peer_slots_ + offset, bytes), &tickets_[index]);
    if (posted == Posted::Full) return false;
    if (posted == Posted::Done) tickets_[index] = Ticket{};
    put_posted_ = true;
  }
  header_.signature = signature;
  header_.bytes = word;
  header_.inline_bytes = travels_inline(bytes) ? static_cast<uint32_t>(bytes) : 0;
  const RemoteSlice line = remote(peer_lines_ + index * kLineBytes, kLineBytes);
  if (link_.transport->signal(link_.peer, channel_, line, sent_ + 1, header_) == Posted::Full)
    return false;
  ++sent_;
  put_posted_ = false;
  return true;
}

const Line* Port::take() {
  pay_credit();
  const Line* line = peek();
  received_ += line != nullptr;
  return line;
}

const Line* Port::peek() const {
  const Line& line = lines_[received_ % depth_];
  return line.counter.load(std::memory_order_acquire) == received_ + 1 ? &line : nullptr;
}

uint64_t Port::arrived() const {
  uint64_t count = 0;
  while (count < depth_ && lines_[(received_ + count) % depth_].counter.load(
                               std::memory_order_acquire) == received_ + count + 1) {
    ++count;
  }
  return count;
}

const std::byte* Port::incoming(uint64_t bytes) const {
  const uint32_t index = incoming_index();
  return travels_inline(bytes) ? lines_[index].inline_data : slots_ + index * slot_bytes_;
}

void Port::consume() {
  ++consumed_;
  pay_credit();
}

void Port::pay_credit() {
  // Half a depth at a time: one credit line for several messages, and a sender that has waited for
  // credit has half a depth of room again.
  if (consumed_ - credited_ < depth_ / 2) return;
  const RemoteSlice line = remote(peer_credit_, kLineBytes);
  if (link_.transport->signal(link_.peer, channel_, line, consumed_, Header{}) == Posted::Full)
    return;
  credited_ = consumed_;
}

}  // namespace rdmacoll
