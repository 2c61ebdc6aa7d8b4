// CallLog: what a rank has called is read back; a log that a hostile peer has written can be read,
// too. Those inputs are the smallest that fuzzing found (tests/fuzz).
#include "csrc/engine/failure/call_log.h"

#include <gtest/gtest.h>

#include <cstring>

namespace rdmacoll::call_log_test {
namespace {

struct alignas(kLineBytes) LogBytes {
  std::byte bytes[kCallLogBytes] = {};
};
TEST(CallLog, IsReadBack) {
  LogBytes memory;
  CallLog log(memory.bytes);
  log.begin({.sequence = 1, .bytes = 400});
  log.end(1);
  log.begin({.sequence = 2, .bytes = 800});
  log.set_message(MessageCall{.bytes = 8, .peer = 3, .is_send = 1});
  const CallLogView view(memory.bytes);
  ASSERT_TRUE(view.newest() && view.at(1) && view.message());
  EXPECT_EQ(view.newest()->call.bytes, 800u);
  EXPECT_FALSE(view.newest()->ended);
  EXPECT_TRUE(view.at(1)->ended);
  EXPECT_EQ(describe(*view.message()), "send of 8 bytes to rank 3 with tag 0");
  log.set_message(std::nullopt);
  EXPECT_FALSE(view.message());
}

// As a peer reads it while it changes: words come from before or after, in whatever order. In one
// of thousands of simulated hours a call with the number of one and the signature of another came
// of that, and failed its group.
TEST(CallLog, WordsOfTwoCallsAreNone) {
  LogBytes before, after;
  CallLog log(after.bytes);
  log.begin({.sequence = 1, .bytes = 400, .signature = 7, .started_ns = 10});
  log.end(1);
  std::memcpy(before.bytes, after.bytes, sizeof(before.bytes));
  log.begin({.sequence = 1 + kLoggedCollectives, .bytes = 800, .signature = 8, .started_ns = 20});
  constexpr size_t kWord = sizeof(uint64_t);
  for (uint32_t newer = 0; newer < 1u << kLineBytes / kWord; ++newer) {
    LogBytes read = before;
    for (size_t word = 0; word < kLineBytes / kWord; ++word) {
      const size_t at = kLineBytes + word * kWord;
      if (newer >> word & 1) std::memcpy(read.bytes + at, after.bytes + at, kWord);
    }
    const CallLogView view(read.bytes);
    if (const auto old = view.at(1)) {
      EXPECT_EQ(old->call.signature, 7);
    }
    if (const auto fresh = view.at(1 + kLoggedCollectives)) {
      EXPECT_EQ(fresh->call.signature, 8);
      EXPECT_FALSE(fresh->ended);
    }
  }
  EXPECT_TRUE(CallLogView(before.bytes).at(1)->ended);
  EXPECT_TRUE(CallLogView(after.bytes).at(1 + kLoggedCollectives));
}

TEST(CallLog, FlagsMayBeAnyByte) {
  LogBytes memory;
  CallLog log(memory.bytes);
  log.begin({.sequence = 1});
  MessageCall message;
  message.is_send = 64;
  log.set_message(message);
  const CallLogView view(memory.bytes);
  ASSERT_TRUE(view.newest() && view.message());
  EXPECT_TRUE(describe(*view.message()).starts_with("send"));
}

TEST(CallLog, ATimeMayBeAnyNumber) {
  EXPECT_EQ(waited_ns(1, 3), 2);
  EXPECT_EQ(waited_ns(3, 1), 0);  // clocks of two hosts
  EXPECT_EQ(waited_ns(INT64_MIN, INT64_MAX), 0);
  EXPECT_EQ(waited_ns(INT64_MAX, INT64_MIN), 0);
}

}  // namespace
}  // namespace rdmacoll::call_log_test
