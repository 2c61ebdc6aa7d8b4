// Wire: a send queue, a stream socket and a frame reader behind each other, and a taker that writes
// down what it hears. Floor: tests. Thread: one.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/memory/unique_fd.h"
#include "csrc/transport/tcp/connection/frame_reader.h"
#include "csrc/transport/tcp/connection/send_queue.h"

namespace rdmacoll::tcp {

inline constexpr SipKey kWireKey{1, 2};

struct Taken {
  FrameHead head;
  std::string body;  // or payload
};

class WritingTaker final : public FrameTaker {
 public:
  explicit WritingTaker(size_t bytes) : memory(bytes, '.') {}

  std::vector<Taken> frames;
  std::string memory;  // where payload goes
  // Of each frame without payload.
  std::function<FrameTaker::Heard(const FrameHead&)> verdict = [](const FrameHead&) {
    return FrameTaker::Heard::Done;
  };

  FrameTaker::Heard hear(const FrameHead& head, std::span<const std::byte> body) override {
    const FrameTaker::Heard said = verdict(head);
    if (said == FrameTaker::Heard::Done) {
      frames.push_back({head, {reinterpret_cast<const char*>(body.data()), body.size()}});
    }
    return said;
  }
  Place place_of(const FrameHead& head) override {
    if (head.offset > memory.size() || head.bytes > memory.size() - head.offset) {
      return {Place::Kind::Wrong};
    }
    return {Place::Kind::Here, reinterpret_cast<std::byte*>(memory.data()) + head.offset};
  }
  void arrived(const FrameHead& head) override {
    frames.push_back({head, memory.substr(head.offset, head.bytes)});
  }
};

struct Wire {
  explicit Wire(size_t memory_bytes = 1 << 20) : taker(memory_bytes) {
    int ends[2];
    RDMACOLL_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    in = UniqueFd(ends[0]);
    far = UniqueFd(ends[1]);
  }

  void push_put(const std::string& payload, uint64_t offset, uint64_t transfer = 1) {
    out.push_payload(FrameHead{.kind = FrameKind::Put, .region = 3, .offset = offset},
                     reinterpret_cast<const std::byte*>(payload.data()),
                     static_cast<uint32_t>(payload.size()), transfer);
  }
  void push_put(std::string&&, uint64_t, uint64_t = 1) = delete;  // the payload has to stay
  void push_signal(const std::string& body = std::string(kSignalHeadBytes, 's')) {
    out.push_body(FrameHead{.kind = FrameKind::Signal, .region = 3}, body.data(), body.size());
  }
  // The bytes of all that is queued, which no longer is.
  std::string take_bytes() {
    RDMACOLL_CHECK(out.write(far.get()) == SendQueue::Wrote::All);
    std::string all(1 << 20, '\0');
    const ssize_t got = ::recv(in.get(), all.data(), all.size(), MSG_DONTWAIT);
    all.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return all;
  }
  FrameReader::Read read() {
    FrameReader::Read last;
    do {
      last = reader.read(in.get(), taker);
    } while (last == FrameReader::Read::More && !reader.waits());
    return last;
  }
  // Puts these bytes before the reader, which looks at them at once.
  FrameReader::Read hear(const std::string& bytes) {
    RDMACOLL_CHECK(::send(far.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) ==
                   static_cast<ssize_t>(bytes.size()));
    return read();
  }

  UniqueFd in, far;
  SendQueue out{kWireKey};
  FrameReader reader{kWireKey};
  WritingTaker taker;
};

// The bytes of one frame, right or not, as number `number` of its connection.
inline std::string frame(FrameHead head, const std::string& behind, uint64_t number,
                         const SipKey& key = kWireKey) {
  head.bytes = static_cast<uint32_t>(behind.size());
  head.tag = tag_of(key, number, head, behind.data());
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + behind;
}

}  // namespace rdmacoll::tcp
