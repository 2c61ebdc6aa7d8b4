// Port: this rank's end of one channel to one peer, both directions: messages out, messages in, and
// the credits that bound them. To itself a rank has both ends. What the executor and p2p are
// written in. Floor: engine/channel. Thread: the driver.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "csrc/engine/channel/layout.h"
#include "csrc/engine/channel/link.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// Where the bytes of a zero-copy message are (plan.h, "Zero copy"): in this rank's heap.
struct ZeroCopySource {
  LocalSlice slice{};   // in a region to put from, where the peer is not mapped
  uint64_t offset = 0;  // in the heap
};

// Where the lines, slots and bounce slots of one channel between two ranks are. Messages are
// numbered from 0 in each direction, and take the places in turn.
class PortMemory {
 public:
  PortMemory(const ChannelPlace& place, const Link& link);

  uint32_t depth() const { return depth_; }
  uint64_t slot_bytes() const { return slot_bytes_; }
  uint32_t index(uint64_t message) const {  // a depth is a power of two (limits.h)
    return static_cast<uint32_t>(message) & (depth_ - 1);
  }

  // This rank's own, for what comes in.
  Line& line(uint64_t message) const { return lines_[index(message)]; }
  std::byte* slot(uint64_t message) const { return slots_ + index(message) * slot_bytes_; }
  const Line& credit() const { return lines_[depth_]; }
  // And for what goes out to a peer that is not mapped.
  LocalSlice bounce(uint64_t message, uint64_t bytes) const {
    return {bounce_ + index(message) * slot_bytes_, bytes, region_};
  }

  // The peer's, as offsets in its slab.
  uint64_t peer_line(uint64_t message) const {
    return peer_lines_ + index(message) * uint64_t{kLineBytes};
  }
  uint64_t peer_slot(uint64_t message) const { return peer_slots_ + index(message) * slot_bytes_; }
  uint64_t peer_credit() const { return peer_lines_ + depth_ * uint64_t{kLineBytes}; }

 private:
  uint32_t depth_;
  uint64_t slot_bytes_;
  Line* lines_;  // and the credit behind them (layout.h)
  std::byte* slots_;
  std::byte* bounce_;
  RegionId region_;
  uint64_t peer_lines_;
  uint64_t peer_slots_;
};

class Port {
 public:
  Port(const ChannelPlace& place, const Link& link, uint8_t channel);

  // --- out ------------------------------------------------------------------------------------
  // How many messages have been announced.
  uint64_t announced() const { return sent_; }
  // Whether the next message has a place; only then may it be written and announced.
  bool can_send() const;
  const Link& link() const { return link_; }
  // Whether what is written here is in the peer's memory at once.
  bool is_mapped() const { return link_.is_mapped(); }
  // Where the next message of so many bytes is to be written.
  std::byte* outgoing(uint64_t bytes);
  // Announces what was written, or stays in its source. A peer that is not mapped gets it where it
  // is to be placed, else in a slot. False: the transport is full, call again with the same
  // message. length_and_sequence is the line's, and the receiver checks it.
  bool announce(uint32_t signature, uint64_t bytes, uint32_t length_and_sequence,
                const ZeroCopySource* source = nullptr, const RemoteSlice* placement = nullptr);
  bool announce(uint64_t bytes) { return announce(0, bytes, static_cast<uint32_t>(bytes)); }

  // --- in -------------------------------------------------------------------------------------
  // How many messages have been taken.
  uint64_t taken() const { return received_; }
  // The next message if it has come, else nullptr. It stays the newest until the next take().
  const Line* take();
  // The same without taking it.
  const Line* peek() const;
  // Messages that have come and are not taken yet.
  uint64_t arrived() const;
  // Where the newest message's bytes are, unless it is zero-copy.
  const std::byte* incoming(uint64_t bytes) const;
  // Whether the newest message, of so many bytes, is to be read out of its source; where that is.
  bool is_zero_copy(uint64_t bytes) const;
  const std::byte* in_source(uint64_t begin, uint64_t bytes) const;
  // Whether it is where this rank has granted its placement.
  bool is_placed(uint64_t bytes) const;
  // Gives the newest message's place back to the peer. If the transport is full, the next take()
  // tells the peer: it is the one that the peer's next message needs. A zero-copy message is
  // given back at once, or else in settle(): the peer's operation waits for it.
  void consume(bool was_zero_copy = false);

  // Where the peer wants a message of so many bytes, by the key of a placement that it has given;
  // without bytes: the key is none of that.
  Region open_placement(const std::array<char, kShortKeyBytes>& key, uint64_t bytes) const;

  // --- zero copy ------------------------------------------------------------------------------
  // Gives back the zero-copy messages that this rank has consumed, where that was put off. Whether
  // all are given back both ways, so that their sources may be written.
  bool settle();
  // Whether the peer has been told of all zero-copy messages that this rank has consumed; tells it.
  bool has_given_back();
  // Whether the peer, which is mapped, has told this rank the same of those that it has sent.
  bool has_them_back() const;
  // Whether no put of this rank is under way here any more.
  bool puts_done() const;

  // --- stages ---------------------------------------------------------------------------------
  // Which of my stages the next message announces; which of the peer's the newest one did.
  uint32_t outgoing_index() const { return memory_.index(sent_); }
  uint32_t incoming_index() const { return memory_.index(received_ - 1); }

 private:
  bool has_room() const { return sent_ - returned_ < memory_.depth(); }
  Posted signal(uint64_t line, uint64_t counter, const Header& header) const;
  void look_for_credit() const;
  void advance_returned(uint32_t credit) const;
  void pay_credit();
  bool put_message(uint64_t bytes, const ZeroCopySource* source, const RemoteSlice* placement);
  void write_header(uint64_t bytes, const ZeroCopySource* source);
  uint64_t newest_source() const;
  bool travels_inline(uint64_t bytes) const { return has_slots_ && bytes <= kInlineBytes; }
  RemoteSlice remote(uint64_t offset, uint64_t bytes) const {
    return {link_.slab.id, offset, bytes};
  }

  Link link_;
  uint8_t channel_;
  bool has_slots_;
  PortMemory memory_;

  uint64_t sent_ = 0;
  mutable uint64_t returned_ = 0;  // of these, what the peer is known to have consumed
  uint64_t received_ = 0;
  uint64_t consumed_ = 0;
  uint64_t credited_ = 0;
  uint64_t zero_copy_sent_ = 0;  // messages sent up to the last zero-copy one
  uint64_t zero_copy_read_ = 0;  // messages consumed up to the last zero-copy one
  bool put_posted_ = false;      // the next message's put is out, its signal is not
  bool put_placed_ = false;      // and it goes where it is to be placed
  // Of the last put into each of the peer's slots; empty where the peer is mapped.
  std::vector<Ticket> tickets_;
  Header header_;
};

}  // namespace rdmacoll
