// How a group fails: deadlines, mismatches, abort, a rank that leaves; nobody is left waiting.
#include <atomic>
#include <chrono>
#include <latch>

#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::failure_test {
namespace {

WorkPtr all_reduce(Communicator& c, std::vector<float>& data) {
  auto work = c.all_reduce(data.data(), data.data(), data.size(), DType::Float32, ReduceOp::Sum);
  EXPECT_TRUE(work.ok()) << work.status().message();
  return work.take();
}

bool says(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

TEST(Failure, ALateRankIsNamedAndAllRaise) {
  WorldOfThreads(3).run([](Communicator& c) {
    std::vector<float> data(100);
    if (c.rank() == 0) c.set_timeout_ms(200);
    if (c.rank() == 2) {  // calls too late
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      // What the others had sent is here, so the first one may end well; not the next.
      const bool first = c.wait(*all_reduce(c, data), -1, {}).ok();
      ASSERT_TRUE(!first || !c.wait(*all_reduce(c, data), -1, {}).ok());
      return;
    }
    const Status status = c.wait(*all_reduce(c, data), -1, {});
    if (c.rank() == 0) {
      ASSERT_EQ(status.code(), StatusCode::Timeout);
      ASSERT_TRUE(says(status, "all_reduce #1")) << status.message();
    } else {
      ASSERT_FALSE(status.ok());
    }
    ASSERT_FALSE(c.barrier().ok());
  });
}

TEST(Failure, DifferentSizesAreAMismatchOnEveryRank) {
  WorldOfThreads(3).run([](Communicator& c) {
    std::vector<float> data(c.rank() == 1 ? 101 : 100);
    const Status status = c.wait(*all_reduce(c, data), -1, {});
    ASSERT_FALSE(status.ok());
    ASSERT_TRUE(status.code() == StatusCode::Mismatch || status.code() == StatusCode::PeerFailed)
        << status.message();
  });
}

TEST(Failure, DifferentAlgorithmsOnDifferentChannelsAreAMismatch) {
  WorldOfThreads(2).run([](Communicator& c) {
    std::vector<float> data(c.rank() == 0 ? 8 : 1 << 20);
    const Status status = c.wait(*all_reduce(c, data), -1, {});
    ASSERT_TRUE(status.code() == StatusCode::Mismatch || status.code() == StatusCode::PeerFailed)
        << status.message();
  });
}

TEST(Failure, DifferentOrderIsAMismatch) {
  WorldOfThreads(2).run([](Communicator& c) {
    std::vector<float> data(100);
    auto work = c.rank() == 0 ? c.barrier()
                              : c.all_reduce(data.data(), data.data(), data.size(), DType::Float32,
                                             ReduceOp::Sum);
    ASSERT_FALSE(c.wait(*work.value(), -1, {}).ok());
  });
}

TEST(Failure, RanksThatOnlyWaitForEachOtherAreAMismatch) {
  WorldOfThreads(3).run([](Communicator& c) {
    std::vector<float> data(100);
    // Each takes the next for the root, so that nobody sends.
    const int root = (c.rank() + 1) % c.size();
    auto work = c.broadcast(data.data(), data.size() * sizeof(float), root);
    const Status status = c.wait(*work.value(), -1, {});
    ASSERT_TRUE(status.code() == StatusCode::Mismatch || status.code() == StatusCode::PeerFailed)
        << status.message();
    ASSERT_TRUE(says(status, "broadcast #1")) << status.message();
  });
}

TEST(Failure, AbortEndsWhatIsInFlightEverywhere) {
  WorldOfThreads(2).run([](Communicator& c) {
    std::vector<float> data(100);
    if (c.rank() == 1) {
      c.abort("enough");
      ASSERT_EQ(c.barrier().status().code(), StatusCode::Aborted);
      return;
    }
    const Status status = c.wait(*all_reduce(c, data), -1, {});
    ASSERT_EQ(status.code(), StatusCode::PeerFailed);
    ASSERT_TRUE(says(status, "rank 1 gave the group up: enough")) << status.message();
  });
}

TEST(Failure, LeavingFailsOnlyThoseWhoNeedIt) {
  std::latch exchanged(2);  // who fails first gives the group up for the other
  WorldOfThreads(3).run([&](Communicator& c) {
    int value = c.rank();
    if (c.rank() == 2) {
      int never = 0;
      auto pending = c.recv({&never, 4}, 0, 1);
      c.leave("going home");
      ASSERT_EQ(c.wait(*pending.value(), -1, {}).code(), StatusCode::Aborted);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    finish(c, c.rank() == 0 ? c.send({&value, 4}, 1, 0) : c.recv({&value, 4}, 0, 0));
    exchanged.arrive_and_wait();
    ASSERT_EQ(value, 0);
    const Status status = c.wait(*c.barrier().value(), -1, {});
    ASSERT_EQ(status.code(), StatusCode::PeerFailed) << status.message();
    ASSERT_TRUE(says(status, "rank 2 is gone")) << status.message();
  });
}

TEST(Failure, WaitCanGiveUpAndComeBack) {
  WorldOfThreads(2).run([](Communicator& c) {
    std::vector<float> data(100, 1.0f);
    if (c.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(150));
    const WorkPtr work = all_reduce(c, data);
    if (c.rank() == 0) {
      ASSERT_EQ(c.wait(*work, 10, {}).code(), StatusCode::Timeout);
      const Status interrupted =
          c.wait(*work, -1, [] { return Status(StatusCode::Interrupted, "Ctrl-C"); });
      ASSERT_EQ(interrupted.code(), StatusCode::Interrupted);
    }
    ASSERT_TRUE(c.wait(*work, -1, {}).ok());
    ASSERT_EQ(data, std::vector<float>(100, 2.0f));
  });
}

TEST(Failure, AReceiveThatNobodyAnswersEndsAloneAndTheGroupLives) {
  WorldOfThreads(2).run([](Communicator& c) {
    if (c.rank() == 0) {
      c.set_timeout_ms(50);
      int value = 0;
      auto work = c.recv({&value, 4}, 1, 9);
      const Status status = c.wait(*work.value(), -1, {});
      ASSERT_EQ(status.code(), StatusCode::Timeout);
      ASSERT_TRUE(says(status, "nobody has sent it")) << status.message();
      c.set_timeout_ms(kTestTimeoutMs);
    }
    finish(c, c.barrier());
  });
}

TEST(Failure, ARankThatLeftIsNamed) {
  ThreadBootstrap bootstrap(2);
  std::barrier done(2);
  const auto body = [&](int rank) {
    auto endpoint = Endpoint::open(config_of_environment());
    auto face = bootstrap.face(rank);
    auto made = endpoint.value()->create_communicator(rank, 2, face, kTestTimeoutMs);
    ASSERT_TRUE(made.ok()) << made.status().message();
    std::shared_ptr<Communicator> c = made.take();
    float value = 1;
    // The last words of a rank that leaves still count.
    finish(*c, c->all_reduce(&value, &value, 1, DType::Float32, ReduceOp::Sum));
    ASSERT_EQ(value, 2.0f);
    if (rank == 0) {
      // The result of make is held by `made` too.
      made = Status(StatusCode::Aborted, "left");
      c.reset();
    } else {
      const Status status = c->wait(*c->barrier().value(), -1, {});
      ASSERT_EQ(status.code(), StatusCode::PeerFailed);
      ASSERT_TRUE(says(status, "rank 0 is gone")) << status.message();
    }
    done.arrive_and_wait();
  };
  std::thread other([&] { body(1); });
  body(0);
  other.join();
}

TEST(Failure, BadArgumentsAreRefusedAndNothingMoves) {
  WorldOfThreads(2).run([](Communicator& c) {
    std::vector<float> data(4);
    const std::vector<MutableBuffer> one = {{data.data(), 16}};
    ASSERT_EQ(c.broadcast(data.data(), 16, 2).status().code(), StatusCode::InvalidArgument);
    ASSERT_EQ(c.all_gather({data.data(), 16}, one).status().code(), StatusCode::InvalidArgument);
    ASSERT_EQ(c.all_reduce(data.data(), data.data(), 4, DType::Bool, ReduceOp::Avg).status().code(),
              StatusCode::Unsupported);
    finish(c, c.barrier());
  });
}

}  // namespace
}  // namespace rdmacoll::failure_test
