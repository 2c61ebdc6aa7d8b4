// FrameReader: takes frames out of a connection. Payload is read straight to its place; what comes
// in front of it, or behind it, goes through a small buffer. It trusts nothing that it reads.
// Floor: transport/tcp/connection. Thread: the driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "csrc/transport/tcp/connection/frame.h"

namespace rdmacoll::tcp {

// What becomes of frames whose tag holds.
class FrameTaker {
 public:
  enum class Heard {
    Done,
    Later,  // not before something else has come: resume() asks again
    Wrong,  // the peer breaks the protocol
  };
  // Of a frame without payload.
  virtual Heard hear(const FrameHead& head, std::span<const std::byte> body) = 0;
  // Where the payload goes, head.bytes of it, at least one.
  struct Place {
    enum class Kind {
      Here,
      Nowhere,  // it comes too late, and is dropped
      Wrong,    // the peer breaks the protocol
    };
    Kind kind;
    std::byte* at = nullptr;
  };
  virtual Place place_of(const FrameHead& head) = 0;
  virtual void arrived(const FrameHead& head) = 0;

 protected:
  ~FrameTaker() = default;
};

class FrameReader {
 public:
  explicit FrameReader(const SipKey& key) : key_(key) {}

  enum class Read {
    Empty,   // the connection has nothing more now
    More,    // it may have
    Ended,   // the other side has ended it
    Broken,  // it breaks the protocol
    Failed,  // errno says why
  };
  // One call of the system.
  Read read(int fd, FrameTaker& taker);
  // Whether a frame is to be heard later. Nothing is read meanwhile.
  bool waits() const { return waits_; }
  // False: the other side breaks the protocol.
  bool resume(FrameTaker& taker) { return parse(taker); }

  // What is left of the payload on its way is dropped as it comes.
  void drop_payload() { payload_ = nullptr; }
  // The region that payload is on its way to.
  RegionId receives_into() const {
    return payload_left_ > 0 && head_.kind == FrameKind::Put ? head_.region : kNoRegion;
  }

 private:
  static constexpr size_t kBufferBytes = 8192;

  bool parse(FrameTaker& taker);
  // Whether the frame at the front of `bytes` is right, and how long it is without payload. 0: it
  // has not all come.
  bool check(std::span<const std::byte> bytes, FrameHead* head, size_t* own_bytes) const;
  bool begin_payload(const FrameHead& head, std::span<const std::byte> come, FrameTaker& taker,
                     size_t* used);
  void take_payload(size_t bytes, FrameTaker& taker);
  void drop_from_buffer(FrameTaker& taker);

  const SipKey key_;
  std::unique_ptr<std::array<std::byte, kBufferBytes>> buffer_ =
      std::make_unique<std::array<std::byte, kBufferBytes>>();
  size_t filled_ = 0;
  bool waits_ = false;
  uint64_t number_ = 0;           // of frames whose tag held
  FrameHead head_;                // of the payload
  std::byte* payload_ = nullptr;  // where the next of it goes; nullptr: nowhere
  size_t payload_left_ = 0;
};

}  // namespace rdmacoll::tcp
