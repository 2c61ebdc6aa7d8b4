// SendQueue: what a socket takes of it, in which order, and when a payload is no longer read.
#include "csrc/transport/tcp/connection/send_queue.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/wire.h"

namespace rdmacoll::tcp::send_queue_test {
namespace {

std::string letters(size_t bytes, char first = 'a') {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(first + i % 23);
  return text;
}

TEST(SendQueue, SaysFramesInTheirOrderWithTheirPayload) {
  Wire wire;
  const std::string payload = letters(1000), x = "x";
  wire.push_put(payload, 17);
  wire.push_signal();
  wire.push_put(x, 5);
  EXPECT_EQ(
      wire.take_bytes(),
      frame({.kind = FrameKind::Put, .region = 3, .offset = 17}, payload, 0) +
          frame({.kind = FrameKind::Signal, .region = 3}, std::string(kSignalHeadBytes, 's'), 1) +
          frame({.kind = FrameKind::Put, .region = 3, .offset = 5}, "x", 2));
  EXPECT_TRUE(wire.out.empty());
}

// Of this kind of socket one call puts one message there.
TEST(SendQueue, ManyFramesLeaveInOneCall) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd in(ends[0]), far(ends[1]);
  Wire wire;
  const std::string payload = letters(64);
  for (uint32_t i = 0; i < SendQueue::kFramesAtOnce; ++i) {
    EXPECT_FALSE(wire.out.fills_a_call());
    wire.push_put(payload, 0, i + 1);
  }
  EXPECT_TRUE(wire.out.fills_a_call());
  wire.push_put(payload, 0, SendQueue::kFramesAtOnce + 1);
  EXPECT_EQ(wire.out.write(far.get()), SendQueue::Wrote::All);
  std::string message(1 << 16, '\0');
  const auto receive = [&] { return ::recv(in.get(), message.data(), message.size(), 0); };
  const auto put_bytes = static_cast<ssize_t>(sizeof(FrameHead) + payload.size());
  EXPECT_EQ(receive(), SendQueue::kFramesAtOnce * put_bytes);
  EXPECT_EQ(receive(), put_bytes);
  EXPECT_EQ(receive(), -1);
}

TEST(SendQueue, HasRoomForItsDepth) {
  Wire wire;
  for (uint32_t i = 0; i < SendQueue::kDepth; ++i) {
    EXPECT_TRUE(wire.out.has_room(SendQueue::kDepth - i));
    EXPECT_FALSE(wire.out.has_room(SendQueue::kDepth - i + 1));
    wire.push_signal();
  }
  EXPECT_FALSE(wire.out.has_room());
  EXPECT_EQ(wire.read(), FrameReader::Read::Empty);
  EXPECT_EQ(wire.out.write(wire.far.get()), SendQueue::Wrote::All);
  EXPECT_TRUE(wire.out.has_room(SendQueue::kDepth));
  EXPECT_EQ(wire.read(), FrameReader::Read::Empty);
  EXPECT_EQ(wire.taker.frames.size(), SendQueue::kDepth);
}

// A socket that takes little at a time, so that frames are cut anywhere.
TEST(SendQueue, GoesOnWhereTheSocketStopped) {
  Wire wire;
  const int small = 1;
  ASSERT_EQ(::setsockopt(wire.far.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
  const std::string payload = letters(300'000);
  bool was_full = false;
  for (uint64_t round = 1; round <= 50; ++round) {
    const std::string small_one = letters(round);
    wire.push_put(payload, 0, 2 * round - 1);
    wire.push_signal();
    wire.push_put(small_one, 400'000, 2 * round);
    SendQueue::Wrote wrote;
    while ((wrote = wire.out.write(wire.far.get())) == SendQueue::Wrote::Some) {
      was_full = true;
      EXPECT_LT(wire.out.done_up_to(2 * round), 2 * round);
      ASSERT_NE(wire.read(), FrameReader::Read::Broken);
    }
    ASSERT_EQ(wrote, SendQueue::Wrote::All);
    EXPECT_EQ(wire.out.done_up_to(2 * round), 2 * round);
    ASSERT_NE(wire.read(), FrameReader::Read::Broken);
    ASSERT_EQ(wire.taker.frames.size(), 3 * round);
    EXPECT_EQ(wire.taker.frames[3 * round - 3].body, payload);
    EXPECT_EQ(wire.taker.frames.back().body, small_one);
  }
  EXPECT_TRUE(was_full);
}

TEST(SendQueue, WithNothingQueuedAllTransfersAreDone) {
  Wire wire;
  EXPECT_EQ(wire.out.done_up_to(0), 0u);
  EXPECT_EQ(wire.out.done_up_to(17), 17u);  // they went over other streams
  const std::string payload = "abc";
  wire.push_put(payload, 0, 18);
  EXPECT_LT(wire.out.done_up_to(19), 18u);
  wire.take_bytes();
  EXPECT_EQ(wire.out.done_up_to(19), 19u);
}

// A put of more than a frame carries is several frames, also over one stream.
TEST(SendQueue, ATransferIsDoneWithTheLastOfItsFrames) {
  Wire wire;
  const int small = 1;
  ASSERT_EQ(::setsockopt(wire.far.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
  const std::string before = "before", part = letters(200), rest = letters(500'000);
  wire.push_put(before, 0, 6);
  wire.push_put(part, 0, 7);
  wire.push_put(rest, part.size(), 7);
  ASSERT_EQ(wire.out.write(wire.far.get()), SendQueue::Wrote::Some);  // not all of the rest
  EXPECT_EQ(wire.out.done_up_to(7), 6u);
}

TEST(SendQueue, AConnectionThatHasEndedIsAFailure) {
  Wire wire;
  wire.in.reset();
  wire.push_signal();
  EXPECT_EQ(wire.out.write(wire.far.get()), SendQueue::Wrote::Failed);
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace rdmacoll::tcp::send_queue_test
