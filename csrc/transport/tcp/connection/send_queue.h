// SendQueue: frames that a connection has not taken yet, in order. Nothing is copied but heads and
// bodies: payload is read from where it lies.
// Floor: transport/tcp/connection. Thread: the driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "csrc/transport/tcp/connection/frame.h"

namespace rdmacoll::tcp {

class SendQueue {
 public:
  // Of frames that this process sends for itself. Behind them there is room for the answers to all
  // gets that the peer may have under way: two that waited for room to answer, and read nothing
  // meanwhile, would wait for each other.
  static constexpr uint32_t kDepth = 128;
  static constexpr uint32_t kFramesAtOnce = 64;  // in one call of the system

  explicit SendQueue(const SipKey& key) : key_(key) {}

  bool empty() const { return head_ == tail_; }
  bool has_room(uint32_t frames = 1) const { return tail_ - head_ + frames <= kDepth; }
  bool has_room_to_answer() const { return tail_ - head_ < kPlaces; }
  bool fills_a_call() const { return tail_ - head_ >= kFramesAtOnce; }

  // The caller has looked for room. Signs the frame.
  void push_body(FrameHead head, const void* body, size_t bytes);
  // transfer: a number that only grows, by which done_up_to() tells that the payload is not read
  // any more.
  void push_payload(FrameHead head, const std::byte* payload, uint32_t bytes, uint64_t transfer);

  enum class Wrote { All, Some, Failed };
  // Gives the socket what it takes now. Failed: errno says why.
  Wrote write(int fd);

  // All transfers up to this one have been written; `posted` is the newest that there is.
  uint64_t done_up_to(uint64_t posted) const {
    return written_transfer_ == queued_transfer_ ? posted : written_transfer_;
  }

 private:
  struct Entry {
    FrameHead head;
    std::array<std::byte, kMaxBodyBytes> body;
    uint32_t own_bytes;  // of head and body
    const std::byte* payload;
    uint32_t payload_bytes;
    uint64_t transfer;  // 0: none

    uint64_t bytes() const { return uint64_t{own_bytes} + payload_bytes; }
  };

  static constexpr uint32_t kPlaces = kDepth + kMostGets;

  Entry& at(uint64_t index) { return (*ring_)[index % kPlaces]; }
  Entry& next();
  void advance(uint64_t bytes);

  const SipKey key_;
  std::unique_ptr<std::array<Entry, kPlaces>> ring_ =
      std::make_unique<std::array<Entry, kPlaces>>();
  uint64_t head_ = 0;
  uint64_t tail_ = 0;           // as many frames have been signed
  uint64_t written_bytes_ = 0;  // of the first
  uint64_t queued_transfer_ = 0;
  uint64_t written_transfer_ = 0;
};

}  // namespace rdmacoll::tcp
