// Submissions: nothing is accepted behind a failure, and nothing that was accepted gets lost.
#include "csrc/engine/group/submissions.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace rdmacoll::submissions_test {
namespace {

struct SubmissionsTest : testing::Test {
  // What has come, moved out of the batch.
  Submissions::Batch take() {
    Submissions::Batch taken;
    failed = submissions.take([&](Submissions::Batch& batch) { taken = std::move(batch); });
    return taken;
  }
  Load load;
  Submissions submissions{load};
  bool failed = false;  // that the last take() returned
};

TEST_F(SubmissionsTest, ComeOnceAndInOrder) {
  for (uint32_t peer = 0; peer < 3; ++peer) {
    ASSERT_TRUE(submissions.add(SendOp{.peer = peer}).ok());
  }
  ASSERT_TRUE(submissions.add(std::make_unique<CollectiveOp>()).ok());
  EXPECT_EQ(load.in_flight, 4u);
  EXPECT_TRUE(load.has_new);
  const auto batch = take();
  ASSERT_EQ(batch.sends.size(), 3u);
  for (uint32_t peer = 0; peer < 3; ++peer) EXPECT_EQ(batch.sends[peer].peer, peer);
  EXPECT_EQ(batch.collectives.size(), 1u);
  EXPECT_TRUE(batch.recvs.empty());
  EXPECT_FALSE(failed);
  EXPECT_FALSE(load.has_new);
  EXPECT_TRUE(take().sends.empty());
  EXPECT_EQ(load.in_flight, 4u);  // until they end
}

TEST_F(SubmissionsTest, AreRefusedBehindAFailureAndKeptBeforeIt) {
  ASSERT_TRUE(submissions.add(RecvOp{}).ok());
  submissions.fail(Status(StatusCode::Aborted, "first"), ExitReason::Left);
  submissions.fail(Status(StatusCode::Timeout, "second"), ExitReason::Failed);
  EXPECT_EQ(submissions.add(SendOp{}).message(), "first");
  EXPECT_EQ(submissions.failure().message(), "first");
  EXPECT_EQ(submissions.exit_reason(), ExitReason::Left);
  const auto batch = take();
  EXPECT_EQ(batch.recvs.size(), 1u);
  EXPECT_TRUE(batch.sends.empty());
  EXPECT_TRUE(failed);
  EXPECT_EQ(load.in_flight, 1u);
}

TEST_F(SubmissionsTest, ReadingWhatOthersSayIsAcceptedBehindAFailure) {
  submissions.fail(Status(StatusCode::Aborted, "over"), ExitReason::Failed);
  submissions.add(ShrinkStateRead{nullptr, {1, 2}, nullptr, 0});
  const auto batch = take();
  ASSERT_TRUE(batch.shrink_read);
  EXPECT_EQ(batch.shrink_read->ranks.size(), 2u);
  EXPECT_FALSE(take().shrink_read);
}

// Otherwise a receive might be in the next batch whose thread already says by waiting, in this one,
// that its send to itself has no receive.
TEST_F(SubmissionsTest, ThatComeWhileABatchIsTakenWaitForItsEnd) {
  std::future<Status> added;
  failed = submissions.take([&](Submissions::Batch&) {
    added = std::async(std::launch::async, [&] { return submissions.add(RecvOp{}); });
    EXPECT_EQ(added.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  });
  EXPECT_TRUE(added.get().ok());
  EXPECT_EQ(take().recvs.size(), 1u);
}

}  // namespace
}  // namespace rdmacoll::submissions_test
