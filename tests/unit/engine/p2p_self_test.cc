// Point-to-point of a rank with itself: every size, order, tag and source, and a send that could
// never end.
#include <barrier>
#include <chrono>
#include <thread>

#include "tests/unit/engine/messages.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::p2p_self_test {
namespace {

constexpr uint64_t kLong = 1'000'000;  // too long for every protocol but Rendezvous
const std::vector<uint64_t> kSizes = {0, 1, 24, 25, 5000, 16'384, 16'385, 3'000'001};

// Whether the work ends, without a call of wait(): that would tell the group that this thread posts
// no receive meanwhile.
bool ends_unwaited(const Work& work) {
  for (int i = 0; i < 3000 && !work.done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return work.done();
}

// Runs the body in a group of one rank, and in one of two.
void run(const WorldOfThreads::Body& body) {
  for (const int size : {1, 2}) WorldOfThreads(size).run(body);
}

TEST(PointToSelf, EverySizeArrivesWhicheverComesFirst) {
  run([](Communicator& c) {
    for (const uint64_t bytes : kSizes) {
      for (const bool send_first : {true, false}) {
        const std::vector<uint8_t> data = message(static_cast<int>(bytes), bytes);
        std::vector<uint8_t> got(bytes);
        WorkPtr sent, received;
        if (send_first) sent = started(c.send({data.data(), bytes}, c.rank(), 7));
        received = started(c.recv({got.data(), bytes}, c.rank(), 7));
        if (!send_first) sent = started(c.send({data.data(), bytes}, c.rank(), 7));
        finish(c, sent);
        finish(c, received);
        ASSERT_EQ(received->source_rank(), c.rank());
        ASSERT_EQ(got, data) << bytes;
      }
    }
  });
}

TEST(PointToSelf, TagsMatchInAnyOrderAndEqualTagsInOrder) {
  run([](Communicator& c) {
    constexpr int kMessages = 40;
    std::vector<std::vector<uint8_t>> data, got;
    std::vector<WorkPtr> works;
    const auto bytes = [](int i) { return kSizes[static_cast<size_t>(i) % kSizes.size()]; };
    for (int i = 0; i < kMessages; ++i) {
      data.push_back(message(i, bytes(i)));
      got.emplace_back(bytes(i));
    }
    for (int i = 0; i < kMessages; ++i) {
      works.push_back(started(c.send({data[i].data(), bytes(i)}, c.rank(), i % 3)));
    }
    for (int tag = 2; tag >= 0; --tag) {
      for (int i = tag; i < kMessages; i += 3) {
        const int source = i % 2 == 0 ? c.rank() : kAnySource;
        works.push_back(started(c.recv({got[i].data(), bytes(i)}, source, tag)));
      }
    }
    for (const WorkPtr& work : works) finish(c, work);
    ASSERT_EQ(got, data);
  });
}

TEST(PointToSelf, AnySourceTakesFromItselfAndFromPeers) {
  WorldOfThreads(3).run([](Communicator& c) {
    const int mine = c.rank();
    std::vector<WorkPtr> works;
    std::vector<int> got(3, -1);
    for (int& value : got) works.push_back(started(c.recv({&value, 4}, kAnySource, 0)));
    for (int r = 0; r < c.size(); ++r) finish(c, c.send({&mine, 4}, r, 0));
    std::vector<bool> seen(3);
    for (int i = 0; i < 3; ++i) {
      finish(c, works[i]);
      ASSERT_EQ(got[i], works[i]->source_rank());
      ASSERT_FALSE(seen[got[i]]);
      seen[got[i]] = true;
    }
    finish(c, c.barrier());
  });
}

TEST(PointToSelf, ShortSendsAreBufferedAsManyAsForAPeer) {
  run([](Communicator& c) {
    constexpr uint64_t kShort = 4096;
    std::vector<std::vector<uint8_t>> data;
    for (int i = 0; i <= static_cast<int>(kSlotDepth); ++i) data.push_back(message(i, kShort));
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < static_cast<int>(kSlotDepth); ++i) {
        std::vector<uint8_t> memory = data[i];
        finish(c, c.send({memory.data(), kShort}, c.rank(), i));
      }
      const WorkPtr one_more = started(c.send({data.back().data(), kShort}, c.rank(), 100));
      std::vector<uint8_t> got(kShort);
      for (int i = static_cast<int>(kSlotDepth) - 1; i >= 0; --i) {
        finish(c, c.recv({got.data(), kShort}, c.rank(), i));
        ASSERT_EQ(got, data[i]);
      }
      ASSERT_FALSE(one_more->done());
      finish(c, c.recv({got.data(), kShort}, c.rank(), 100));
      ASSERT_EQ(got, data.back());
      finish(c, one_more);
    }
  });
}

TEST(PointToSelf, WaitingForALongSendWithoutAReceiveIsAnError) {
  run([](Communicator& c) {
    std::vector<uint8_t> data = message(1, kLong), got(kLong);
    const WorkPtr sent = started(c.send({data.data(), kLong}, c.rank(), 3));
    const Status status = c.wait(*sent, -1, {});
    ASSERT_EQ(status.code(), StatusCode::InvalidArgument);
    ASSERT_NE(status.message().find("irecv"), std::string::npos);
    // A receive that is posted later does not match the failed send, and the group works on.
    const WorkPtr next = started(c.send({got.data(), kLong}, c.rank(), 3));
    finish(c, c.recv({data.data(), kLong}, c.rank(), 3));
    finish(c, next);
    ASSERT_EQ(data, got);
    finish(c, c.barrier());
  });
}

TEST(PointToSelf, ALongSendWithoutAReceiveTimesOutAlone) {
  run([](Communicator& c) {
    const std::vector<uint8_t> data = message(1, kLong);
    c.set_timeout_ms(20);
    const WorkPtr sent = started(c.send({data.data(), kLong}, c.rank(), 3));
    c.set_timeout_ms(kTestTimeoutMs);
    ASSERT_TRUE(ends_unwaited(*sent));
    ASSERT_EQ(sent->status().code(), StatusCode::Timeout);
    finish(c, c.barrier());
  });
}

TEST(PointToSelf, UnequalSizesFailBothUnlessTheSendHasEnded) {
  run([](Communicator& c) {
    std::vector<uint8_t> data(kLong + 1);
    for (const uint64_t bytes : {uint64_t{8}, uint64_t{1000}, kLong}) {
      const WorkPtr sent = started(c.send({data.data(), bytes}, c.rank(), 0));
      const WorkPtr received = started(c.recv({data.data(), bytes + 1}, c.rank(), 0));
      const StatusCode of_send = bytes == kLong ? StatusCode::Mismatch : StatusCode::Ok;
      ASSERT_EQ(c.wait(*sent, -1, {}).code(), of_send);
      ASSERT_EQ(c.wait(*received, -1, {}).code(), StatusCode::Mismatch);
    }
    finish(c, c.barrier());
  });
}

TEST(PointToSelf, BuffersMayOverlap) {
  run([](Communicator& c) {
    std::vector<uint8_t> data = message(1, kLong + 9);
    const std::vector<uint8_t> before = data;
    const WorkPtr received = started(c.recv({data.data() + 9, kLong}, c.rank(), 0));
    finish(c, c.send({data.data(), kLong}, c.rank(), 0));
    finish(c, received);
    ASSERT_TRUE(std::equal(before.begin(), before.begin() + kLong, data.begin() + 9));
  });
}

TEST(PointToSelf, OperationsInFlightFailWithTheGroup) {
  for (const int size : {1, 2}) {
    std::barrier begun(size);
    WorldOfThreads(size).run([&](Communicator& c) {
      std::vector<uint8_t> data(kLong);
      const WorkPtr sent = started(c.send({data.data(), kLong}, c.rank(), 1));
      const WorkPtr received = started(c.recv({data.data(), kLong}, c.rank(), 2));
      begun.arrive_and_wait();  // nothing starts in a group that a peer gave up
      if (c.rank() == 0) c.abort("enough");
      for (const WorkPtr& work : {sent, received}) {
        ASSERT_TRUE(ends_unwaited(*work));
        ASSERT_EQ(work->status().code(),
                  c.rank() == 0 ? StatusCode::Aborted : StatusCode::PeerFailed);
      }
    });
  }
}

// The driver fails the group while a receive is submitted, but not taken.
TEST(PointToSelf, AReceiveMayComeJustBeforeTheGroupFails) {
  constexpr int kRounds = 40;
  constexpr int kMostMessages = 2000;
  for (int round = 0; round < kRounds; ++round) {
    std::barrier begun(2);  // nothing starts in a group that a peer gave up
    WorldOfThreads(2).run([&](Communicator& c) {
      finish(c, c.barrier());
      if (c.rank() == 1) {
        begun.arrive_and_wait();
        std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
        return c.abort("enough");
      }
      std::vector<uint8_t> data(kLong), got(kLong);
      int nothing = 0;
      const WorkPtr never_comes = started(c.recv({&nothing, sizeof(nothing)}, 1, 2));
      begun.arrive_and_wait();
      std::vector<WorkPtr> works;
      for (int i = 0; i < kMostMessages && !never_comes->done(); ++i) {
        auto sent = c.send({data.data(), kLong}, 0, 1);
        if (sent.ok()) works.push_back(sent.take());
        auto received = c.recv({got.data(), kLong}, 0, 1);
        if (received.ok()) works.push_back(received.take());
      }
      ASSERT_TRUE(ends_unwaited(*never_comes));
      for (const WorkPtr& work : works) ASSERT_TRUE(ends_unwaited(*work));
    });
  }
}

}  // namespace
}  // namespace rdmacoll::p2p_self_test
