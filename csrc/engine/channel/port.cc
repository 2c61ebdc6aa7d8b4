// Port: the hot path of every message. Floor: engine/channel. Thread: the driver.
#include "csrc/engine/channel/port.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

// What a message that does not travel inline says of its bytes: that they are in the slot, or where
// they are in this rank's heap, to a peer that maps it; that they are placed, to one that does not.
constexpr uint64_t kInSlot = ~uint64_t{0};
constexpr uint64_t kPlaced = 0;

}  // namespace

PortMemory::PortMemory(const ChannelPlace& place, const Link& link)
    : depth_(place.depth),
      slot_bytes_(place.slot_bytes),
      lines_(reinterpret_cast<Line*>(link.own_slab.base + link.own_room.lines + place.lines)),
      slots_(link.own_slab.base + link.own_room.slots + place.slots),
      bounce_(slots_ + place.depth * place.slot_bytes),
      region_(link.own_slab.id),
      peer_lines_(link.room.lines + place.lines),
      peer_slots_(link.room.slots + place.slots) {}

Port::Port(const ChannelPlace& place, const Link& link, uint8_t channel)
    : link_(link), channel_(channel), has_slots_(!is_stage_channel(channel)), memory_(place, link) {
  if (!is_mapped()) tickets_.resize(memory_.depth());
}

bool Port::can_send() const {
  if (!has_room()) look_for_credit();
  if (!has_room()) return false;
  return tickets_.empty() || tickets_[outgoing_index()].done();
}

// Credit comes in a line of its own, or with the messages the other way: also with those that are
// here and not taken yet, as this rank may take none before it has sent.
void Port::look_for_credit() const {
  returned_ = std::max(returned_, memory_.credit().counter.load(std::memory_order_acquire));
  const uint64_t come = arrived();
  for (uint64_t i = 0; i < come; ++i) advance_returned(memory_.line(received_ + i).credit);
}

// Lines do not come in the order in which they were sent: an older one says less.
void Port::advance_returned(uint32_t credit) const {
  const uint32_t step = credit - static_cast<uint32_t>(returned_);
  if (step <= sent_ - returned_) returned_ += step;
}

std::byte* Port::outgoing(uint64_t bytes) {
  if (travels_inline(bytes)) return header_.inline_data;
  RDMACOLL_CHECK(bytes <= memory_.slot_bytes());
  return is_mapped() ? link_.slab.base + memory_.peer_slot(sent_)
                     : memory_.bounce(sent_, bytes).data;
}

bool Port::announce(uint32_t signature, uint64_t bytes, uint32_t length_and_sequence,
                    const ZeroCopySource* source, const RemoteSlice* placement) {
  const bool put_due = !is_mapped() && has_slots_ && bytes > kInlineBytes;
  if (put_due && !put_posted_ && !put_message(bytes, source, placement)) return false;
  header_.signature = signature;
  header_.length_and_sequence = length_and_sequence;
  header_.credit = static_cast<uint32_t>(consumed_);
  write_header(bytes, source);
  if (signal(memory_.peer_line(sent_), sent_ + 1, header_) == Posted::Full) return false;
  ++sent_;
  credited_ = consumed_;
  if (source != nullptr) zero_copy_sent_ = sent_;
  put_posted_ = false;
  return true;
}

Posted Port::signal(uint64_t line, uint64_t counter, const Header& header) const {
  if (link_.transport == nullptr) {
    store(*reinterpret_cast<Line*>(link_.slab.base + line), counter, header);
    return Posted::Done;
  }
  return link_.transport->signal(link_.peer, channel_, remote(line, kLineBytes), counter, header);
}

bool Port::put_message(uint64_t bytes, const ZeroCopySource* source, const RemoteSlice* placement) {
  const LocalSlice from = source != nullptr ? source->slice : memory_.bounce(sent_, bytes);
  Ticket& ticket = tickets_[outgoing_index()];
  const RemoteSlice place =
      placement != nullptr ? *placement : remote(memory_.peer_slot(sent_), bytes);
  const Posted posted = link_.transport->put(link_.peer, channel_, from, place, &ticket);
  if (posted == Posted::Full) return false;
  if (posted == Posted::Done) ticket = Ticket{};
  put_posted_ = true;
  put_placed_ = placement != nullptr;
  return true;
}

void Port::write_header(uint64_t bytes, const ZeroCopySource* source) {
  if (travels_inline(bytes)) {
    header_.inline_bytes = static_cast<uint32_t>(bytes);
    return;
  }
  uint64_t where = kInSlot;
  if (!is_mapped()) {
    if (put_posted_ && put_placed_) where = kPlaced;
  } else if (source != nullptr) {
    where = source->offset;
  }
  std::memcpy(header_.inline_data, &where, sizeof(where));
  header_.inline_bytes = sizeof(where);
}

const Line* Port::take() {
  pay_credit();
  const Line* line = peek();
  if (line == nullptr) return nullptr;
  advance_returned(line->credit);
  ++received_;
  return line;
}

const Line* Port::peek() const {
  const Line& line = memory_.line(received_);
  return line.counter.load(std::memory_order_acquire) == received_ + 1 ? &line : nullptr;
}

uint64_t Port::arrived() const {
  uint64_t count = 0;
  while (count < memory_.depth() &&
         memory_.line(received_ + count).counter.load(std::memory_order_acquire) ==
             received_ + count + 1) {
    ++count;
  }
  return count;
}

const std::byte* Port::incoming(uint64_t bytes) const {
  const uint64_t newest = received_ - 1;
  return travels_inline(bytes) ? memory_.line(newest).inline_data : memory_.slot(newest);
}

bool Port::is_zero_copy(uint64_t bytes) const {
  return is_mapped() && !travels_inline(bytes) && newest_source() != kInSlot;
}

bool Port::is_placed(uint64_t bytes) const {
  return !is_mapped() && has_slots_ && !travels_inline(bytes) && newest_source() == kPlaced;
}

uint64_t Port::newest_source() const {
  uint64_t offset;
  std::memcpy(&offset, memory_.line(received_ - 1).inline_data, sizeof(offset));
  return offset;
}

const std::byte* Port::in_source(uint64_t begin, uint64_t bytes) const {
  const uint64_t offset = newest_source() + begin;
  RDMACOLL_CHECK(offset <= link_.heap.size() && bytes <= link_.heap.size() - offset);
  return link_.heap.data() + offset;
}

Region Port::open_placement(const std::array<char, kShortKeyBytes>& key, uint64_t bytes) const {
  if (key == std::array<char, kShortKeyBytes>{}) return {};
  auto region = link_.transport->open_region(link_.peer, {key.data(), key.size()}, Deadline{0});
  return region.ok() && region.value().bytes >= bytes ? region.take() : Region{};
}

void Port::consume(bool was_zero_copy) {
  ++consumed_;
  if (was_zero_copy) zero_copy_read_ = consumed_;
  pay_credit();
}

bool Port::has_given_back() {
  pay_credit();
  return credited_ >= zero_copy_read_;
}

bool Port::has_them_back() const {
  if (returned_ < zero_copy_sent_) look_for_credit();
  return returned_ >= zero_copy_sent_;
}

bool Port::settle() {
  if (!has_given_back()) return false;
  return is_mapped() ? has_them_back() : puts_done();
}

bool Port::puts_done() const {
  return std::all_of(tickets_.begin(), tickets_.end(),
                     [](const Ticket& ticket) { return ticket.done(); });
}

void Port::pay_credit() {
  // Half a depth at a time: one credit line for several messages, and a sender that has waited for
  // credit has half a depth of room again. The peer waits for its zero-copy messages.
  if (consumed_ - credited_ < memory_.depth() / 2 && credited_ >= zero_copy_read_) return;
  if (signal(memory_.peer_credit(), consumed_, Header{}) == Posted::Full) return;
  credited_ = consumed_;
}

}  // namespace rdmacoll
