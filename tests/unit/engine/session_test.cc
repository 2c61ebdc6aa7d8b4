// Sessions: two processes that ask each other, read and write each other's memory, and fail alone.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

#include "csrc/engine/session/read_write.h"
#include "csrc/engine/session/session_memory.h"
#include "csrc/engine/session/sessions.h"
#include "csrc/transport/shm/transport.h"
#include "csrc/transport/tcp/transport.h"
#include "tests/unit/engine/ranks_over.h"

namespace rdmacoll::session_test {
namespace {

constexpr int64_t kSoonMs = 20'000;

// Says what it is asked, with a word before it; refuses "no".
class Echo final : public Responder {
 public:
  Result<std::string> answer(const SessionPtr&, const std::string& text) override {
    if (text == "no") return Status(StatusCode::InvalidArgument, "it says no");
    return "heard " + text;
  }
  void note_end(const SessionPtr&) override { ++ends; }

  std::atomic<int> ends{0};
};

OwnedTransports shm(const Clock& clock) {
  OwnedTransports owned;
  owned.push_back(ShmTransport::open(Config{}, clock, ThisProcess::make().take()).take());
  return owned;
}

OwnedTransports tcp(const Clock& clock) {
  OwnedTransports owned;
  owned.push_back(TcpTransport::open(Config{}, clock, ThisProcess::make().take()).take());
  return owned;
}

class SessionTest : public testing::TestWithParam<const char*> {
 protected:
  using Body = std::function<void(RankOver&, Communicator&, Echo&)>;

  void run(uint32_t size, const Body& body) {
    const bool over_tcp = std::string(GetParam()) == "tcp";
    std::barrier ready(size);
    std::barrier done(size);
    run_over(
        size,
        [&](uint32_t rank) {
          const std::string host = over_tcp ? "host" + std::to_string(rank) : "host";
          return std::make_unique<RankOver>(host, over_tcp ? tcp : shm);
        },
        [&](RankOver& rank, Communicator& c) {
          Echo echo;
          rank.sessions().answer_by(&echo);
          ready.arrive_and_wait();
          body(rank, c, echo);
          done.arrive_and_wait();
          rank.sessions().answer_by(nullptr);
        });
  }

  static SessionPtr meet(RankOver& rank, Communicator& c, int other) {
    auto session = rank.sessions().meet(*c.address_of(other), "rank " + std::to_string(other),
                                        Deadline::after_ms(rank.clock(), kSoonMs), {});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return session.ok() ? session.take() : nullptr;
  }

  static Status wait(RankOver& rank, const WorkPtr& work) {
    Work* const works[] = {work.get()};
    RDMACOLL_RETURN_IF_ERROR(rank.progress().wait(works, kSoonMs, {}));
    return work->status();
  }

  static RequestPtr request(RankOver& rank, const std::string& text) {
    auto made = std::make_shared<Request>();
    made->work = std::make_shared<Work>();
    made->text = text;
    made->deadline_ns = rank.clock().now_ns() + kSoonMs * 1'000'000;
    return made;
  }
  static Result<std::string> ask(RankOver& rank, Session& session, const std::string& text) {
    const RequestPtr made = request(rank, text);
    RDMACOLL_RETURN_IF_ERROR(rank.sessions().submit(session, made));
    RDMACOLL_RETURN_IF_ERROR(wait(rank, made->work));
    return made->reply;
  }

  static Status move(RankOver& rank, Session& session, std::unique_ptr<Transfer> transfer) {
    transfer->work = std::make_shared<Work>();
    transfer->deadline_ns = rank.clock().now_ns() + kSoonMs * 1'000'000;
    const WorkPtr work = transfer->work;
    RDMACOLL_RETURN_IF_ERROR(rank.sessions().submit(session, std::move(transfer)));
    return wait(rank, work);
  }
};

TEST_P(SessionTest, AnswersWhileItsProgramIsAtSomethingElse) {
  std::barrier asked(2);
  run(2, [&](RankOver& rank, Communicator& c, Echo&) {
    if (c.rank() == 0) {
      const SessionPtr session = meet(rank, c, 1);
      ASSERT_NE(session, nullptr);
      EXPECT_EQ(ask(rank, *session, "hello").value(), "heard hello");
      const std::string longest(kMessageTextMax - 6, 'x');
      EXPECT_EQ(ask(rank, *session, longest).value(), "heard " + longest);
      const auto refused = ask(rank, *session, "no");
      EXPECT_EQ(refused.status().code(), StatusCode::InvalidArgument);
      EXPECT_EQ(refused.status().message(), "it says no");
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(ask(rank, *session, std::to_string(i)).ok());
    }
    asked.arrive_and_wait();
  });
}

TEST_P(SessionTest, ManyAskEachOtherAtOnce) {
  run(4, [&](RankOver& rank, Communicator& c, Echo&) {
    std::vector<SessionPtr> sessions;
    for (int other = 0; other < c.size(); ++other) {
      if (other != c.rank()) sessions.push_back(meet(rank, c, other));
    }
    std::vector<RequestPtr> requests;
    for (int i = 0; i < 60; ++i) {
      for (const SessionPtr& session : sessions) {
        requests.push_back(request(rank, std::to_string(i)));
        ASSERT_TRUE(rank.sessions().submit(*session, requests.back()).ok());
      }
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_TRUE(wait(rank, requests[i]->work).ok());
      EXPECT_EQ(requests[i]->reply, "heard " + std::to_string(i / sessions.size()));
    }
    finish(c, c.barrier());
  });
}

TEST_P(SessionTest, ReadsAndWritesMemoryOfTheOther) {
  constexpr uint64_t kBytes = (9u << 20) + 24;
  std::barrier step(2);
  Region offered;
  std::string key;
  run(2, [&](RankOver& rank, Communicator& c, Echo&) {
    const SessionPtr session = meet(rank, c, 1 - c.rank());
    ASSERT_NE(session, nullptr);
    const Link& link = session->link();
    Path path;
    path.transport = link.transport;
    path.peer = link.peer;
    if (c.rank() == 1) {
      offered = rank.transports().create_region(kBytes).take();
      for (uint64_t i = 0; i < kBytes; ++i) offered.base[i] = static_cast<std::byte>(i * 7);
      ASSERT_TRUE(rank.transports().offer_region(path, offered.id, kNoNote).ok());
      key = rank.transports().region_key(offered.id);
    }
    step.arrive_and_wait();
    if (c.rank() == 0) {
      auto theirs =
          rank.transports().open_region(path, key, Deadline::after_ms(rank.clock(), kSoonMs));
      ASSERT_TRUE(theirs.ok()) << theirs.status().message();
      std::vector<std::byte> mine(kBytes);
      ASSERT_TRUE(move(rank, *session,
                       std::make_unique<Read>(LocalSlice{mine.data(), kBytes}, theirs.value(), 0))
                      .ok());
      for (uint64_t i = 0; i < kBytes; ++i) ASSERT_EQ(mine[i], static_cast<std::byte>(i * 7));
      std::fill(mine.begin(), mine.end(), std::byte{5});
      ASSERT_TRUE(move(rank, *session,
                       std::make_unique<Write>(LocalSlice{mine.data(), kBytes - 8}, theirs.value(),
                                               8, Write::Notification{3, 1}))
                      .ok());
    } else {
      // Over tcp somebody has to drive for the peer's sake: that is a background thread.
      while (session->counter(3) < 1) std::this_thread::yield();
      EXPECT_EQ(offered.base[7], static_cast<std::byte>(49));
      for (uint64_t i = 8; i < kBytes; ++i) ASSERT_EQ(offered.base[i], std::byte{5});
    }
    step.arrive_and_wait();
  });
}

TEST_P(SessionTest, FailsAloneWhenTheOtherEnds) {
  std::barrier met(3);
  std::barrier asked(2);  // rank 0 the one that lives
  run_over(
      3,
      [&](uint32_t rank) {
        const bool over_tcp = std::string(GetParam()) == "tcp";
        const std::string host = over_tcp ? "host" + std::to_string(rank) : "host";
        return std::make_unique<RankOver>(host, over_tcp ? tcp : shm);
      },
      [&](RankOver& rank, Communicator& c) {
        Echo echo;
        rank.sessions().answer_by(&echo);
        met.arrive_and_wait();
        SessionPtr session;
        SessionPtr other;
        if (c.rank() == 0) {
          session = meet(rank, c, 1);
          other = meet(rank, c, 2);
          ASSERT_TRUE(ask(rank, *session, "x").ok());
        }
        met.arrive_and_wait();
        if (c.rank() == 1) {
          rank.leaves = true;
          rank.sessions().answer_by(nullptr);
          return;
        }
        if (c.rank() == 0) {
          Status status;
          while (status.code() != StatusCode::PeerFailed) {
            status = ask(rank, *session, "y").status();
          }
          EXPECT_NE(status.message().find("rank 1 is gone"), std::string::npos) << status.message();
          while (echo.ends == 0) std::this_thread::yield();
          EXPECT_EQ(ask(rank, *other, "z").value(), "heard z");
        }
        asked.arrive_and_wait();
        rank.sessions().answer_by(nullptr);
      });
}

INSTANTIATE_TEST_SUITE_P(Over, SessionTest, testing::Values("shm", "tcp"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace rdmacoll::session_test
