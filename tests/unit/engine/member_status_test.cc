// MemberStatus: what a rank says last is read back; a line that a hostile peer has written can be
// read, too.
#include "csrc/engine/channel/member_status.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::member_status_test {
namespace {

constexpr uint32_t kWorld = 4;

// A peer whose status line is this process's own.
struct MemberStatusTest : testing::Test {
  MemberStatusTest() {
    transport.on_signal = [this](RemoteSlice, uint64_t counter, const Header& header) {
      std::memcpy(line.inline_data, header.inline_data, header.inline_bytes);
      line.counter = counter;
      return Posted::Done;
    };
  }
  void publish(const MemberStatus& status) { status.publish({.transport = &transport}, 0); }
  std::optional<MemberStatus> read() const {
    return MemberStatus::read(reinterpret_cast<const std::byte*>(&line), kWorld);
  }

  FakeTransport transport{"fake", "address"};
  Line line{};
};

TEST_F(MemberStatusTest, OfOneThatGoesOnIsNone) { EXPECT_FALSE(read()); }

TEST_F(MemberStatusTest, IsReadBack) {
  publish({.reason = ExitReason::Failed, .lost = 3, .cause = "rank 3 is gone"});
  const auto said = read();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->reason, ExitReason::Failed);
  EXPECT_EQ(said->lost, 3u);
  EXPECT_EQ(said->cause, "rank 3 is gone");
}

TEST_F(MemberStatusTest, OfOneThatHasLeftNamesNobody) {
  publish({.reason = ExitReason::Left});
  const auto said = read();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->reason, ExitReason::Left);
  EXPECT_FALSE(said->lost);
  EXPECT_EQ(said->cause, "");
}

TEST_F(MemberStatusTest, ALongCauseIsCutOff) {
  const std::string cause(1000, 'x');
  publish({.cause = cause});
  const auto said = read();
  ASSERT_TRUE(said);
  EXPECT_GE(said->cause.size(), 30u);
  EXPECT_EQ(said->cause, cause.substr(0, said->cause.size()));
}

TEST_F(MemberStatusTest, AnyBytesCanBeRead) {
  std::memset(line.inline_data, 0xFF, sizeof(line.inline_data));
  line.counter = 1;
  const auto said = read();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->reason, ExitReason::Failed);
  EXPECT_FALSE(said->lost);  // a rank that is none
  EXPECT_LE(said->cause.size(), sizeof(line.inline_data));
}

}  // namespace
}  // namespace rdmacoll::member_status_test
