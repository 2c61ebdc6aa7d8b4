// Stream: sender and receiver, stepped without blocking.
#include <algorithm>
#include <cstring>

#include "tests/contract/stream.h"

namespace rdmacoll {

StreamSender::StreamSender(Member& member, const StreamLayout& layout, int to, int channel,
                           uint64_t messages)
    : member_(member),
      layout_(layout),
      to_(to),
      channel_(channel),
      messages_(messages),
      message_(layout, member.rank, to, channel, 0),
      source_(member.region.base + layout.source(to, channel)) {}

bool StreamSender::source_is_free() {
  std::erase_if(pending_, [](const Ticket& ticket) { return ticket.done(); });
  return pending_.empty();
}

void StreamSender::advance() {
  if (!source_is_free() && !started_) return;
  if (number_ == messages_) return;
  Transport& transport = member_.transport;
  const PeerId peer = member_.peer(to_);
  const RegionId region = member_.region_of(to_);
  const uint64_t size = message_.data.size();
  if (!started_) {
    const Line& credit = member_.line(layout_.credit(to_, channel_));
    if (number_ >= credit.counter.load(std::memory_order_acquire) + StreamLayout::kDepth) return;
    // The receiver may read its old slot no more, and I may write my source again.
    if (size > 0) std::memcpy(source_, message_.data.data(), size);
    started_ = true;
    std::byte* mapped = member_.opened[static_cast<size_t>(to_)].base;
    if (message_.stored && mapped != nullptr && size > 0) {
      std::memcpy(mapped + layout_.slot(member_.rank, channel_, number_), source_, size);
      posted_ = size;
    }
  }
  if (!put_up_to(message_.cut) || !put_up_to(size)) return;
  const RemoteSlice line{region, layout_.line(member_.rank, channel_, number_), kLineBytes};
  if (transport.signal(peer, static_cast<uint8_t>(channel_), line, number_ + 1, message_.header) ==
      Posted::Full) {
    return;
  }
  ++number_;
  posted_ = 0;
  started_ = false;
  message_ = StreamMessage(layout_, member_.rank, to_, channel_, number_);
}

// False: the transport is full.
bool StreamSender::put_up_to(uint64_t end) {
  if (posted_ >= end) return true;
  const uint64_t slot = layout_.slot(member_.rank, channel_, number_);
  Ticket ticket;
  const Posted posted =
      member_.transport.put(member_.peer(to_), static_cast<uint8_t>(channel_),
                            {source_ + posted_, end - posted_, member_.region.id},
                            {member_.region_of(to_), slot + posted_, end - posted_}, &ticket);
  if (posted == Posted::Full) return false;
  if (posted == Posted::Pending) {
    pending_.push_back(ticket);
  } else {
    std::memset(source_ + posted_, 0xEE, end - posted_);
  }
  posted_ = end;
  return true;
}

void StreamReceiver::advance() {
  if (number_ < messages_) {
    const Line& line = member_.line(layout_.line(from_, channel_, number_));
    if (line.counter.load(std::memory_order_acquire) >= number_ + 1) {
      check();
      ++number_;
    }
  }
  // Every other message, and the last: credits may be given for several at once.
  const bool due = number_ > credited_ && (number_ % 2 == 0 || number_ == messages_);
  if (!due) return;
  const RemoteSlice credit{member_.region_of(from_), layout_.credit(member_.rank, channel_),
                           kLineBytes};
  if (member_.transport.signal(member_.peer(from_), static_cast<uint8_t>(channel_), credit, number_,
                               Header{}) != Posted::Full) {
    credited_ = number_;
  }
}

void StreamReceiver::check() {
  const StreamMessage expected(layout_, from_, member_.rank, channel_, number_);
  const Line& line = member_.line(layout_.line(from_, channel_, number_));
  const std::byte* slot = member_.region.base + layout_.slot(from_, channel_, number_);
  const bool right =
      line.counter.load(std::memory_order_relaxed) == number_ + 1 &&
      line.signature == expected.header.signature &&
      line.length_and_sequence == expected.header.length_and_sequence &&
      line.credit == expected.header.credit &&
      std::memcmp(line.inline_data, expected.header.inline_data, expected.header.inline_bytes) ==
          0 &&
      (expected.data.empty() || std::memcmp(expected.data.data(), slot, expected.data.size()) == 0);
  if (right) return;
  throw std::runtime_error("message " + std::to_string(number_) + " from rank " +
                           std::to_string(from_) + " on channel " + std::to_string(channel_) +
                           " is not what was sent");
}

Script stream_everywhere(Member& member, StreamLayout layout, uint64_t messages) {
  co_await member.meet();
  co_await member.share(layout.region_bytes(member.world));
  std::vector<StreamSender> senders;
  std::vector<StreamReceiver> receivers;
  for (int other = 0; other < member.world; ++other) {
    for (int channel = 0; channel < layout.channels; ++channel) {
      senders.emplace_back(member, layout, other, channel, messages);
      receivers.emplace_back(member, layout, other, channel, messages);
    }
  }
  for (bool finished = false; !finished;) {
    finished = true;
    for (StreamSender& sender : senders) {
      sender.advance();
      finished = finished && sender.finished();
    }
    for (StreamReceiver& receiver : receivers) {
      receiver.advance();
      finished = finished && receiver.finished();
    }
    if (!finished) co_await member.turn();
  }
  co_await member.gather("nobody leaves while others still read");
}

}  // namespace rdmacoll
