// CallLog: what a rank has called is read back; a log that a hostile peer has written can be read,
// too. Those inputs are the smallest that fuzzing found (tests/fuzz).
#include "csrc/engine/failure/call_log.h"

#include <gtest/gtest.h>

#include <cstring>

namespace rdmacoll {
namespace {

struct alignas(kLineBytes) LogBytes {
  std::byte bytes[kCallLogBytes] = {};
};
constexpr size_t kEndedAt = 40;  // of an entry, behind number and call

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

TEST(CallLog, FlagsMayBeAnyByte) {
  LogBytes memory;
  CallLog log(memory.bytes);
  log.begin({.sequence = 1});
  memory.bytes[kLineBytes + kEndedAt] = std::byte{64};
  MessageCall message;
  message.is_send = 64;
  log.set_message(message);
  const CallLogView view(memory.bytes);
  ASSERT_TRUE(view.newest() && view.message());
  EXPECT_TRUE(view.newest()->ended);
  EXPECT_TRUE(describe(*view.message()).starts_with("send"));
}

TEST(CallLog, ATimeMayBeAnyNumber) {
  EXPECT_EQ(waited_ns(1, 3), 2);
  EXPECT_EQ(waited_ns(3, 1), 0);  // clocks of two hosts
  EXPECT_EQ(waited_ns(INT64_MIN, INT64_MAX), 0);
  EXPECT_EQ(waited_ns(INT64_MAX, INT64_MIN), 0);
}

}  // namespace
}  // namespace rdmacoll
