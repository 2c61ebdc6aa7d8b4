// GroupRecord: what comes back is what was said, and nothing else is taken for a record.
#include "csrc/engine/connect/group_record.h"

#include <gtest/gtest.h>

namespace rdmacoll::group_record_test {
namespace {

const GroupRecord kRecord{
    .agreement = 1, .rank = 2, .world = 4, .address = "address", .key = "key", .token = 5};
constexpr size_t kAddressBytesAt = 28;

StatusCode code_of(const std::string& bytes) { return GroupRecord::decode(bytes).status().code(); }

TEST(GroupRecord, ComesBack) {
  auto record = GroupRecord::decode(kRecord.encode());
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record.value().rank, 2u);
  EXPECT_EQ(record.value().world, 4u);
  EXPECT_EQ(record.value().address, "address");
  EXPECT_EQ(record.value().key, "key");
  EXPECT_EQ(record.value().token, 5u);
}

TEST(GroupRecord, IsTakenWholeOrNotAtAll) {
  const std::string bytes = kRecord.encode();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(code_of(bytes.substr(0, length)), StatusCode::InvalidArgument) << length;
  }
  EXPECT_EQ(code_of(bytes + '\0'), StatusCode::InvalidArgument);
}

// A reason is not signed, so anybody may have written it, and users see it.
TEST(GroupRecord, AReasonIsPrintedWithoutControlCharacters) {
  const Status told = GroupRecord::decode(decline_record("\033]0;title\a\033[2Jgone")).status();
  EXPECT_EQ(told.message(), "it could not take part: \\x1b]0;title\\x07\\x1b[2Jgone");
  const Status cut = GroupRecord::decode(decline_record(std::string(100'000, '\a'))).status();
  EXPECT_LT(cut.message().size(), 2100u);
}

TEST(GroupRecord, SizesMustAddUp) {
  std::string bytes = kRecord.encode();
  bytes[kAddressBytesAt + 3] = '\xFF';  // 4 GiB
  EXPECT_EQ(code_of(bytes), StatusCode::InvalidArgument);
}

// Found by fuzzing: bytes that this version does not write were let through.
TEST(GroupRecord, AReasonToDeclineIsPassedOnButNoBookOfIt) {
  constexpr size_t kLongest = 4096;
  const Status status = GroupRecord::decode(decline_record("no memory")).status();
  EXPECT_EQ(status.code(), StatusCode::PeerFailed);
  EXPECT_EQ(status.message(), "it could not take part: no memory");
  const std::string book(1 << 20, 'x');
  EXPECT_LT(GroupRecord::decode(decline_record(book)).status().message().size(), kLongest);
}

}  // namespace
}  // namespace rdmacoll::group_record_test
