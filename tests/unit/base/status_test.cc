// Status, Result and CHECK.
#include "csrc/base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace rdmacoll::status_test {
namespace {

Status returns_first_failure(const Status& first, bool* went_on) {
  RDMACOLL_RETURN_IF_ERROR(first);
  *went_on = true;
  return Status();
}

TEST(Status, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::Ok);
  EXPECT_EQ(status.message(), "");
}

TEST(Status, FailureKeepsCodeAndMessageInCopies) {
  Status copy;
  {
    const Status status(StatusCode::PeerFailed, "rank 3 died");
    copy = status;
  }
  EXPECT_FALSE(copy.ok());
  EXPECT_EQ(copy.code(), StatusCode::PeerFailed);
  EXPECT_EQ(copy.message(), "rank 3 died");
}

TEST(Status, FromErrnoSaysWhatWasTriedAndWhy) {
  const Status status = Status::from_errno("cannot open 'x'", ENOENT);
  EXPECT_EQ(status.code(), StatusCode::System);
  EXPECT_EQ(status.message(), "cannot open 'x': No such file or directory");
}

TEST(Status, EveryCodeHasItsName){
#define X(name) EXPECT_STREQ(status_code_name(StatusCode::name), #name);
    RDMACOLL_STATUS_CODES(X)
#undef X
}

TEST(Status, ReturnIfErrorStopsAtAFailureOnly) {
  bool went_on = false;
  const Status failure(StatusCode::Timeout, "too late");
  EXPECT_EQ(returns_first_failure(failure, &went_on).message(), "too late");
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(returns_first_failure(Status(), &went_on).ok());
  EXPECT_TRUE(went_on);
}

TEST(Result, HoldsAValueOrAFailure) {
  Result<std::unique_ptr<int>> right(std::make_unique<int>(7));
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(*right.value(), 7);
  const std::unique_ptr<int> taken = right.take();
  EXPECT_EQ(*taken, 7);

  const Result<int> wrong(Status(StatusCode::Mismatch, "ranks disagree"));
  EXPECT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.status().code(), StatusCode::Mismatch);
}

TEST(StatusDeathTest, MisuseStops) {
  EXPECT_DEATH(Status(StatusCode::Ok, "fine"), "broken invariant");
  EXPECT_DEATH(Result<int>{Status()}, "broken invariant");
  Result<int> wrong(Status(StatusCode::Timeout, "too late"));
  EXPECT_DEATH(wrong.value(), "has_value");
}

TEST(CheckDeathTest, SaysWhereAndWhat) {
  RDMACOLL_CHECK(1 + 1 == 2);
  EXPECT_DEATH(RDMACOLL_CHECK(1 + 1 == 3), "status_test.cc:[0-9]+: .*1 \\+ 1 == 3");
}

}  // namespace
}  // namespace rdmacoll::status_test
