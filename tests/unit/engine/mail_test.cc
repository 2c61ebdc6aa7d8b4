// Mail: messages of any length come in their order, and the end of who sends them is told.
#include "csrc/engine/mail.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <optional>

#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::mail_test {
namespace {

// What comes, by rank.
class Box {
 public:
  void put(uint32_t rank, const Status& status, std::span<const std::byte> message) {
    const std::lock_guard lock(mutex_);
    if (status.ok()) {
      messages_[rank].emplace_back(message.begin(), message.end());
    } else {
      failures_[rank].push_back(status);
    }
    changed_.notify_all();
  }
  // While nobody waits in the engine.
  std::vector<Bytes> wait_for(uint32_t rank, size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLimit, [&] { return messages_[rank].size() >= count; }));
    return messages_[rank];
  }
  Status wait_for_failure(uint32_t rank) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kLimit, [&] { return !failures_[rank].empty(); }));
    EXPECT_EQ(failures_[rank].size(), 1U);
    return failures_[rank].empty() ? Status() : failures_[rank][0];
  }
  size_t count(uint32_t rank) {
    const std::lock_guard lock(mutex_);
    return messages_[rank].size();
  }

 private:
  static constexpr std::chrono::milliseconds kLimit{kTestTimeoutMs};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, std::vector<Bytes>> messages_;
  std::map<uint32_t, std::vector<Status>> failures_;
};

// A rank's mail and what comes by it. The mail goes first, while another thread may still be told.
struct Post {
  explicit Post(Communicator& c) { mail.emplace(c, told(box)); }

  static Mail::Told told(const std::shared_ptr<Box>& box) {
    return [box](uint32_t rank, const Status& status, std::span<const std::byte> message) {
      box->put(rank, status, message);
    };
  }

  const std::shared_ptr<Box> box = std::make_shared<Box>();
  std::optional<Mail> mail;
};

std::shared_ptr<const Bytes> letter(size_t number, size_t bytes) {
  auto made = std::make_shared<Bytes>(bytes);
  for (size_t i = 0; i < bytes; ++i) (*made)[i] = static_cast<std::byte>(number * 37 + i * 11);
  return made;
}

// Beside the limits of each way: within the head, one piece, several.
constexpr size_t kHeadBytes = 16;
constexpr size_t kLengths[] = {0,
                               1,
                               kHeadBytes,
                               kHeadBytes + 1,
                               24,
                               25,
                               5000,
                               Mail::kPieceBytes,
                               Mail::kPieceBytes + kHeadBytes,
                               Mail::kPieceBytes + kHeadBytes + 1,
                               3 * Mail::kPieceBytes + 5,
                               0,
                               2};

TEST(Mail, MessagesOfAnyLengthComeInTheirOrder) {
  WorldOfThreads(3).run([](Communicator& c) {
    Post post(c);
    const auto me = static_cast<uint32_t>(c.rank());
    for (uint32_t rank = 0; rank < 3; ++rank) {
      if (rank != me) post.mail->listen_to(rank);
    }
    for (size_t i = 0; i < std::size(kLengths); ++i) {
      for (uint32_t rank = 0; rank < 3; ++rank) {
        if (rank != me) {
          ASSERT_TRUE(post.mail->send(rank, letter(me * 100 + i, kLengths[i])).ok());
        }
      }
    }
    for (uint32_t rank = 0; rank < 3; ++rank) {
      if (rank == me) continue;
      const std::vector<Bytes> got = post.box->wait_for(rank, std::size(kLengths));
      ASSERT_EQ(got.size(), std::size(kLengths));
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], *letter(rank * 100 + i, kLengths[i])) << "message " << i;
      }
    }
    finish(c, c.barrier());
  });
}

// More than there are slots, all before anybody listens.
TEST(Mail, WhatCameBeforeIsTold) {
  constexpr size_t kMessages = 200;
  WorldOfThreads(2).run([](Communicator& c) {
    Post post(c);
    if (c.rank() == 1) {
      for (size_t i = 0; i < kMessages; ++i) ASSERT_TRUE(post.mail->send(0, letter(i, i)).ok());
    }
    finish(c, c.barrier());
    if (c.rank() == 0) {
      post.mail->listen_to(1);
      const std::vector<Bytes> got = post.box->wait_for(1, kMessages);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], *letter(i, i));
    }
    finish(c, c.barrier());
  });
}

TEST(Mail, ToldOfARankThatIsGone) {
  WorldOfThreads(2).run([](Communicator& c) {
    Post post(c);
    post.mail->listen_to(1 - static_cast<uint32_t>(c.rank()));
    if (c.rank() == 1) {
      ASSERT_TRUE(post.mail->send(0, letter(1, 100)).ok());
      ASSERT_EQ(post.box->wait_for(0, 1).size(), 1U);
      c.leave("going home");
      EXPECT_EQ(post.box->wait_for_failure(0).code(), StatusCode::Aborted);
      EXPECT_FALSE(post.mail->send(0, letter(2, 100)).ok());
      return;
    }
    ASSERT_EQ(post.box->wait_for(1, 1).size(), 1U) << "its last words still count";
    ASSERT_TRUE(post.mail->send(1, letter(3, 100)).ok());
    const Status why = post.box->wait_for_failure(1);
    EXPECT_EQ(why.code(), StatusCode::PeerFailed) << why.message();
    EXPECT_EQ(post.mail->send(1, letter(4, 100)).code(), StatusCode::PeerFailed);
    EXPECT_EQ(post.box->count(1), 1U);
  });
}

// A head names more than any memory holds: one piece is taken at a time, and the rest never comes.
TEST(Mail, ALengthIsNotBelieved) {
  WorldOfThreads(2).run([](Communicator& c) {
    Post post(c);
    if (c.rank() == 1) {
      const uint64_t head[3] = {uint64_t{1} << 62, 0, 0};
      finish(c, c.send({head, sizeof(head)}, 0, 0));
      const std::vector<std::byte> piece(Mail::kPieceBytes);
      finish(c, c.send({piece.data(), piece.size()}, 0, 1));
      finish(c, c.barrier());
      c.leave("in the middle of a message");
      return;
    }
    post.mail->listen_to(1);
    finish(c, c.barrier());
    EXPECT_EQ(post.box->wait_for_failure(1).code(), StatusCode::PeerFailed);
    EXPECT_EQ(post.box->count(1), 0U);
  });
}

TEST(Mail, WhoIsGoneIsToldOfNothing) {
  WorldOfThreads(2).run([](Communicator& c) {
    Post post(c);
    if (c.rank() == 0) {
      post.mail->listen_to(1);
      post.mail.reset();
    }
    finish(c, c.barrier());
    if (c.rank() == 1) {
      ASSERT_TRUE(post.mail->send(0, letter(1, 10)).ok());
    }
    finish(c, c.barrier());
    EXPECT_EQ(post.box->count(1), 0U);
  });
}

// The communicator goes right behind it, while the thread that has told is on its way to receive
// what comes next.
TEST(Mail, MayGoOnceItHasToldWhatItWasFor) {
  for (int i = 0; i < 20; ++i) {
    WorldOfThreads(2).run([](Communicator& c) {
      Post post(c);
      const uint32_t other = 1 - static_cast<uint32_t>(c.rank());
      post.mail->listen_to(other);
      for (size_t sent = 0; sent < 50; ++sent) {
        ASSERT_TRUE(post.mail->send(other, letter(sent, sent)).ok());
      }
      ASSERT_EQ(post.box->wait_for(other, 50).size(), 50U);
    });
  }
}

TEST(Mail, MayGoWhileItTells) {
  WorldOfThreads(2).run([](Communicator& c) {
    const auto box = std::make_shared<Box>();
    std::optional<Mail> mail;
    mail.emplace(
        c, [&mail, box](uint32_t rank, const Status& status, std::span<const std::byte> message) {
          mail.reset();
          box->put(rank, status, message);
        });
    const uint32_t other = 1 - static_cast<uint32_t>(c.rank());
    ASSERT_TRUE(mail->send(other, letter(1, 10)).ok());
    ASSERT_TRUE(mail->send(other, letter(2, 10)).ok());
    finish(c, c.barrier());
    mail->listen_to(other);
    EXPECT_EQ(box->wait_for(other, 1).size(), 1U);
    finish(c, c.barrier());
    EXPECT_EQ(box->count(other), 1U);
  });
}

TEST(Mail, RefusesARankThatIsNone) {
  WorldOfThreads(1).run([](Communicator& c) {
    Post post(c);
    EXPECT_EQ(post.mail->send(1, letter(1, 10)).code(), StatusCode::InvalidArgument);
    post.mail->listen_to(1);
    EXPECT_EQ(post.box->wait_for_failure(1).code(), StatusCode::InvalidArgument);
  });
}

}  // namespace
}  // namespace rdmacoll::mail_test
