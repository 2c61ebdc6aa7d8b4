// Stream: messages from one rank to another on one channel through slots, with credits, as the
// engine does it; every byte, header and inline byte is checked. The sender touches its source as
// soon as it may.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/contract/cluster.h"

namespace rdmacoll {

// Where the streams of a rank lie in its region: one block per (other rank, channel).
struct StreamLayout {
  static constexpr uint64_t kDepth = 4;
  uint64_t slot_bytes;
  int channels;

  // Line of credits for what I send, lines of the slots that I receive in, the slots, and the
  // source of what I send.
  uint64_t block_bytes() const { return kLineBytes * (1 + kDepth) + (kDepth + 1) * slot_bytes; }
  uint64_t block(int other, int channel) const {
    return static_cast<uint64_t>(other * channels + channel) * block_bytes();
  }
  uint64_t credit(int other, int channel) const { return block(other, channel); }
  uint64_t line(int other, int channel, uint64_t message) const {
    return block(other, channel) + kLineBytes * (1 + message % kDepth);
  }
  uint64_t slot(int other, int channel, uint64_t message) const {
    return block(other, channel) + kLineBytes * (1 + kDepth) + message % kDepth * slot_bytes;
  }
  uint64_t source(int other, int channel) const {
    return slot(other, channel, 0) + kDepth * slot_bytes;
  }
  uint64_t region_bytes(int world) const { return block(world, 0); }
};

// What message number `number` of a stream is: known to both ends.
struct StreamMessage {
  StreamMessage(const StreamLayout& layout, int from, int to, int channel, uint64_t number) {
    std::minstd_rand random(static_cast<unsigned>(((from * 8 + to) * 8 + channel) * 9973 + number));
    random.discard(3);
    data.resize(random() % 3 == 0 ? random() % 64 : random() % (layout.slot_bytes + 1));
    uint64_t word = random();
    for (uint64_t at = 0; at < data.size(); at += sizeof word) {
      word = word * 6364136223846793005u + 1442695040888963407u;
      std::memcpy(data.data() + at, &word, std::min<uint64_t>(sizeof word, data.size() - at));
    }
    header.signature = random();
    header.length_and_sequence = static_cast<uint32_t>(data.size());
    header.credit = static_cast<uint8_t>(random() >> 8);
    header.inline_bytes = random() % (kInlineBytes + 1);
    for (uint32_t i = 0; i < header.inline_bytes; ++i) {
      header.inline_data[i] = static_cast<std::byte>(random() >> 8);
    }
    cut = data.empty() ? 0 : random() % data.size();
    stored = random() % 2 == 0;
  }
  std::vector<std::byte> data;
  Header header;
  uint64_t cut;  // two puts: up to here, and the rest
  bool stored;   // written through map() where there is one
};

class StreamSender {
 public:
  StreamSender(Member& member, const StreamLayout& layout, int to, int channel, uint64_t messages);
  void advance();
  bool finished() const { return number_ == messages_ && pending_.empty(); }

 private:
  bool source_is_free();
  bool put_up_to(uint64_t end);

  Member& member_;
  const StreamLayout layout_;
  const int to_;
  const int channel_;
  const uint64_t messages_;
  uint64_t number_ = 0;
  uint64_t posted_ = 0;  // bytes of the current message
  bool started_ = false;
  StreamMessage message_;
  std::byte* const source_;
  std::vector<Ticket> pending_;
};

class StreamReceiver {
 public:
  StreamReceiver(Member& member, const StreamLayout& layout, int from, int channel,
                 uint64_t messages)
      : member_(member), layout_(layout), from_(from), channel_(channel), messages_(messages) {}
  void advance();
  bool finished() const { return credited_ == messages_; }

 private:
  void check();

  Member& member_;
  const StreamLayout layout_;
  const int from_;
  const int channel_;
  const uint64_t messages_;
  uint64_t number_ = 0;
  uint64_t credited_ = 0;
};

// Every rank to every rank, itself included, on all channels of the layout.
Script stream_everywhere(Member& member, StreamLayout layout, uint64_t messages);

}  // namespace rdmacoll
