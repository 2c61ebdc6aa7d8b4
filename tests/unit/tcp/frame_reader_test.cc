// FrameReader: frames in any pieces come whole; whatever is not right breaks the connection and
// leaves memory alone.
#include "csrc/transport/tcp/connection/frame_reader.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/wire.h"

namespace rdmacoll::tcp::frame_reader_test {
namespace {

using Read = FrameReader::Read;

constexpr size_t kReadersBufferBytes = 8192;

std::string signal_at(uint64_t number) {
  return frame({.kind = FrameKind::Signal, .region = 3}, std::string(kSignalHeadBytes, 's'),
               number);
}
std::string put_at(uint64_t number, const std::string& payload, uint64_t offset = 0) {
  return frame({.kind = FrameKind::Put, .region = 3, .offset = offset}, payload, number);
}

void expect_broken(const std::string& bytes, const char* what) {
  Wire wire;
  EXPECT_EQ(wire.hear(bytes), Read::Broken) << what;
  EXPECT_TRUE(wire.taker.frames.empty()) << what;
  EXPECT_EQ(wire.taker.memory.find_first_not_of('.'), std::string::npos) << what;
}

TEST(FrameReader, ReadsInPiecesOfOneByte) {
  Wire wire;
  const std::string bytes = signal_at(0) + put_at(1, "payload") + signal_at(2) + put_at(3, "p", 9);
  for (size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_EQ(wire.hear(bytes.substr(i, 1)), Read::Empty) << i;
  }
  ASSERT_EQ(wire.taker.frames.size(), 4u);
  EXPECT_EQ(wire.taker.frames[1].body, "payload");
  EXPECT_EQ(wire.taker.memory.substr(0, 12), "payload..p..");
}

TEST(FrameReader, ReadsAcrossTheEndOfItsBuffer) {
  for (size_t cut = 1; cut < 64; ++cut) {
    Wire wire;
    std::string bytes;
    uint64_t number = 0;
    // So that a frame lies across the end, cut at each of its places.
    bytes += put_at(number++, std::string(kReadersBufferBytes - 2 * sizeof(FrameHead) - cut, 'x'));
    const size_t payload = bytes.size();
    for (int i = 0; i < 4; ++i) bytes += signal_at(number++);
    bytes += put_at(number++, std::string(20'000, 'y'));
    for (int i = 0; i < 400; ++i) bytes += signal_at(number++);
    ASSERT_GT(bytes.size(), payload + kReadersBufferBytes);
    EXPECT_EQ(wire.hear(bytes), Read::Empty) << cut;
    EXPECT_EQ(wire.taker.frames.size(), number) << cut;
    EXPECT_EQ(wire.taker.memory.substr(0, 20'000), std::string(20'000, 'y'));
  }
}

TEST(FrameReader, EveryByteOfAFrameCounts) {
  const std::string right = signal_at(0);
  for (size_t at = 0; at < right.size(); ++at) {
    std::string wrong = right;
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    Wire wire;
    const Read read = wire.hear(wrong);
    // A length that is another one may mean that more is to come; then nothing is heard.
    EXPECT_TRUE(read == Read::Broken || (read == Read::Empty && wire.taker.frames.empty())) << at;
  }
  const std::string put = put_at(0, "payload");
  for (size_t at = 0; at < sizeof(FrameHead); ++at) {
    std::string wrong = put;
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    expect_broken(wrong, "a head of a put");
  }
}

TEST(FrameReader, ARepeatedALeftOutAndAReorderedFrameBreakTheConnection) {
  const std::string first = signal_at(0), second = signal_at(1), third = signal_at(2);
  const auto hears = [](const std::string& bytes, size_t frames) {
    Wire wire;
    EXPECT_EQ(wire.hear(bytes), Read::Broken);
    EXPECT_EQ(wire.taker.frames.size(), frames);
  };
  hears(first + first, 1);
  hears(first + third, 1);
  hears(second + first, 0);
  hears(first + second + first, 2);
}

TEST(FrameReader, WhatIsSentIsNotWhatIsReceived) {
  Wire wire;
  EXPECT_EQ(wire.hear(frame({.kind = FrameKind::Bye}, "", 0, SipKey{2, 1})), Read::Broken);
}

TEST(FrameReader, AFrameOfAnUnknownKindBreaksTheConnection) {
  for (const uint8_t kind : {0, 12, 255}) {
    expect_broken(frame({.kind = static_cast<FrameKind>(kind)}, "", 0), "the kind");
  }
}

TEST(FrameReader, ABodyThatIsTooLongBreaksTheConnectionBeforeItHasCome) {
  Wire wire;
  const std::string most(kMaxBodyBytes, 'b');
  EXPECT_EQ(wire.hear(frame({.kind = FrameKind::Signal}, most, 0)), Read::Empty);
  EXPECT_EQ(wire.taker.frames.size(), 1u);
  const std::string more = frame({.kind = FrameKind::Signal}, most + "b", 1);
  EXPECT_EQ(wire.hear(more.substr(0, sizeof(FrameHead))), Read::Broken);
}

TEST(FrameReader, APayloadThatIsEmptyOrGoesNowhereBreaksTheConnection) {
  expect_broken(put_at(0, ""), "no payload");
  expect_broken(put_at(0, "payload", (1 << 20) - 6), "beyond the end");
  expect_broken(put_at(0, "payload", UINT64_MAX), "an offset that overflows");
}

TEST(FrameReader, TheEndIsSaidAfterAllThatCame) {
  Wire wire;
  ASSERT_EQ(wire.hear(signal_at(0) + put_at(1, "pay")), Read::Empty);
  wire.far.reset();
  EXPECT_EQ(wire.read(), Read::Ended);
  EXPECT_EQ(wire.taker.frames.size(), 2u);
}

TEST(FrameReader, AConnectionThatFailsSaysWhy) {
  Wire wire;
  EXPECT_EQ(wire.reader.read(-1, wire.taker), Read::Failed);
  EXPECT_EQ(errno, EBADF);
}

TEST(FrameReader, WhatIsHeardLaterHoldsUpWhatFollowsAndNothingIsLost) {
  Wire wire;
  bool may_go_on = false;
  wire.taker.verdict = [&](const FrameHead& head) {
    return head.kind == FrameKind::Mark && !may_go_on ? FrameTaker::Heard::Later
                                                      : FrameTaker::Heard::Done;
  };
  std::string bytes = signal_at(0) + frame({.kind = FrameKind::Mark}, "all", 1);
  for (uint64_t number = 2; number < 500; ++number) bytes += signal_at(number);
  wire.hear(bytes);
  EXPECT_TRUE(wire.reader.waits());
  EXPECT_EQ(wire.taker.frames.size(), 1u);
  EXPECT_TRUE(wire.reader.resume(wire.taker));  // not yet
  EXPECT_TRUE(wire.reader.waits());
  EXPECT_EQ(wire.taker.frames.size(), 1u);
  may_go_on = true;
  EXPECT_TRUE(wire.reader.resume(wire.taker));
  EXPECT_FALSE(wire.reader.waits());
  EXPECT_EQ(wire.read(), Read::Empty);
  EXPECT_EQ(wire.taker.frames.size(), 500u);
}

TEST(FrameReader, TellsWhichRegionAPayloadIsOnItsWayTo) {
  Wire wire;
  const std::string put = put_at(0, "payload");
  EXPECT_EQ(wire.reader.receives_into(), kNoRegion);
  wire.hear(put.substr(0, put.size() - 1));
  EXPECT_EQ(wire.reader.receives_into(), 3u);
  wire.hear(put.substr(put.size() - 1));
  EXPECT_EQ(wire.reader.receives_into(), kNoRegion);
}

}  // namespace
}  // namespace rdmacoll::tcp::frame_reader_test
