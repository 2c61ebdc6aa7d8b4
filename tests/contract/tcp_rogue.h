// TcpRogue: a process that knows the job's secret, does a right handshake with a transport over raw
// sockets, and then says what it likes. Floor: tests. Thread: one.
#pragma once

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <span>
#include <thread>
#include <vector>

#include "csrc/base/job_key.h"
#include "csrc/transport/tcp/connection/address.h"
#include "csrc/transport/tcp/connection/half_open.h"
#include "csrc/transport/tcp/network/sockets.h"
#include "tests/contract/tcp_pair.h"
#include "tests/unit/tcp/wire.h"

namespace rdmacoll {

class TcpRogue {
 public:
  struct Stream {
    SoleFd fd;
    tcp::FrameKeys keys;
    uint64_t said = 0;  // frames
  };

  TcpRogue(TcpTransport& victim, const TcpOptions& options)
      : victim_(victim), key_(JobKey::load(options.secret).take()) {
    const auto count = static_cast<uint8_t>(options.streams);
    std::thread dials([&] {
      for (uint8_t i = 0; i < count; ++i) dial(i, count);
    });
    // Its id is smaller than any, so it has to dial.
    tcp::Address address = tcp::parse_address(victim.info().address).take();
    address.process = kId;
    address.host = "rogue";
    const SteadyClock clock;
    auto met = victim.connect(encode(address), Deadline::after_ms(clock, 20'000));
    EXPECT_TRUE(met.ok()) << met.status().message();
    if (met.ok()) peer_ = met.value();
    dials.join();
  }

  PeerId peer() const { return peer_; }
  Status status() const { return victim_.peer_status(peer_); }
  int fd(size_t stream = 0) const { return streams_[stream].fd.get(); }
  void hang_up() { streams_.clear(); }

  void say_bytes(const std::string& bytes, size_t stream = 0) {
    EXPECT_EQ(::send(fd(stream), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // A frame whose tag holds.
  void say(const tcp::FrameHead& head, const std::string& behind, size_t stream = 0) {
    Stream& to = streams_[stream];
    say_bytes(tcp::frame(head, behind, to.said++, to.keys.out), stream);
  }
  // The same, but only so much of what is behind it; the rest is to follow.
  void say_part(const tcp::FrameHead& head, const std::string& behind, size_t bytes,
                size_t stream) {
    Stream& to = streams_[stream];
    const std::string all = tcp::frame(head, behind, to.said++, to.keys.out);
    say_bytes(all.substr(0, sizeof(head) + bytes), stream);
  }
  // What the victim says next over the first stream, but payload.
  tcp::FrameHead hear() {
    tcp::FrameHead head;
    EXPECT_TRUE(tcp_until([this] { victim_.poll(); }, [this] { return is_readable(fd()); }));
    EXPECT_EQ(::recv(fd(), &head, sizeof(head), MSG_WAITALL), ssize_t{sizeof(head)});
    std::string behind(head.bytes, '\0');
    EXPECT_EQ(::recv(fd(), behind.data(), behind.size(), MSG_WAITALL),
              static_cast<ssize_t>(behind.size()));
    return head;
  }

 private:
  static constexpr ProcessId kId{};

  void dial(uint8_t stream, uint8_t streams) {
    const tcp::Address to = tcp::parse_address(victim_.info().address).take();
    SoleFd fd = tcp::begin_dialling(to.endpoints[0]);
    tcp::HalfOpen connection(
        std::move(fd), tcp::Handshake::dialling({kId, 1, "rogue", {}}, to.process, stream, streams,
                                                random_process_id().take()));
    tcp::HalfOpen::Progress progress;
    while ((progress = connection.advance(key_)) == tcp::HalfOpen::Progress::Waits) {
      std::this_thread::yield();
    }
    ASSERT_EQ(progress, tcp::HalfOpen::Progress::Met) << connection.why().message();
    streams_.push_back({connection.take_fd(), connection.handshake().keys()});
    const int flags = ::fcntl(streams_.back().fd.get(), F_GETFL);
    ::fcntl(streams_.back().fd.get(), F_SETFL, flags & ~O_NONBLOCK);
  }

  TcpTransport& victim_;
  const JobKey key_;
  std::vector<Stream> streams_;
  PeerId peer_ = 0;
};

}  // namespace rdmacoll
