// Point-to-point: matching order, any source, sizes, and no order that blocks.
#include "tests/unit/engine/messages.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::p2p_test {
namespace {

// Beside the limits of each way; and whole chunks with a little more, which is in the line.
constexpr uint64_t kChunk = kSlotBytesMax;
const std::vector<uint64_t> kSizes = {0,
                                      1,
                                      23,
                                      24,
                                      25,
                                      kInlineBytes,
                                      kInlineBytes + 1,
                                      5000,
                                      16'384,
                                      16'385,
                                      kChunk,
                                      kChunk + 8,
                                      2 * kChunk + kInlineBytes,
                                      2 * kChunk + kInlineBytes + 1,
                                      3'000'001,
                                      9'000'000};

TEST(PointToPoint, EverySizeArrives) {
  WorldOfThreads(2).run([](Communicator& c) {
    for (const uint64_t bytes : kSizes) {
      std::vector<uint8_t> data = message(static_cast<int>(bytes), bytes);
      if (c.rank() == 0) {
        finish(c, c.send({data.data(), bytes}, 1, 7));
      } else {
        std::vector<uint8_t> got(bytes);
        finish(c, c.recv({got.data(), bytes}, 0, 7));
        ASSERT_EQ(got, data) << bytes;
      }
    }
  });
}

// But where another thread drives just then, which sends it in its next round.
TEST(PointToPoint, AShortSendHasLeftWhenItsStartReturns) {
  WorldOfThreads(2).run([](Communicator& c) {
    constexpr int kTimes = 50;
    for (const uint64_t bytes : {4, 4096}) {
      int at_once = 0;
      for (int i = 0; i < kTimes; ++i) {
        finish(c, c.barrier());  // all slots are free
        std::vector<uint8_t> data(bytes);
        if (c.rank() == 0) {
          data = message(i, bytes);
          auto work = started(c.send({data.data(), bytes}, 1, 0));
          at_once += work->done();
          finish(c, std::move(work));
        } else {
          finish(c, c.recv({data.data(), bytes}, 0, 0));
        }
        ASSERT_EQ(data, message(i, bytes));
      }
      EXPECT_TRUE(c.rank() != 0 || at_once > kTimes / 2) << at_once << " of " << bytes << " bytes";
    }
  });
}

TEST(PointToPoint, TagsMatchInAnyOrderAndEqualTagsInOrder) {
  WorldOfThreads(2).run([](Communicator& c) {
    constexpr int kMessages = 60;  // more than an envelope ring holds
    constexpr uint64_t kBytes = 10'000;
    std::vector<std::vector<uint8_t>> data;
    std::vector<WorkPtr> works(kMessages);
    for (int i = 0; i < kMessages; ++i) data.push_back(message(i, kBytes));
    if (c.rank() == 0) {
      for (int i = 0; i < kMessages; ++i)
        works[i] = started(c.send({data[i].data(), kBytes}, 1, i % 3));
    } else {
      std::vector<std::vector<uint8_t>> got(kMessages, std::vector<uint8_t>(kBytes));
      for (int tag = 2; tag >= 0; --tag) {
        for (int i = tag; i < kMessages; i += 3) {
          works[i] = started(c.recv({got[i].data(), kBytes}, 0, tag));
        }
      }
      for (int i = 0; i < kMessages; ++i) {
        ASSERT_TRUE(c.wait(*works[i], -1, {}).ok());
        ASSERT_EQ(got[i], data[i]) << i;
      }
    }
    for (const WorkPtr& work : works) ASSERT_TRUE(c.wait(*work, -1, {}).ok());
  });
}

// Those that lie in slots are taken out of order, and those that found none come another way.
TEST(PointToPoint, ShortMessagesWaitInTheirSlotsForAnyOrderOfReceives) {
  WorldOfThreads(2).run([](Communicator& c) {
    constexpr int kMessages = 3 * static_cast<int>(kSlotDepth);
    constexpr uint64_t kBytes = 100;
    for (int round = 0; round < 20; ++round) {
      std::vector<WorkPtr> works;
      std::vector<std::vector<uint8_t>> data;
      for (int i = 0; i < kMessages; ++i) data.push_back(message(i + round, kBytes));
      if (c.rank() == 0) {
        for (int i = 0; i < kMessages; ++i) {
          works.push_back(started(c.send({data[i].data(), kBytes}, 1, i)));
        }
        for (const WorkPtr& work : works) ASSERT_TRUE(c.wait(*work, -1, {}).ok());
      } else {
        for (int i = 0; i < kMessages; ++i) {
          const int tag = (i * 7 + round) % kMessages;  // 7 and 24 have no common divisor
          std::vector<uint8_t> got(kBytes);
          finish(c, c.recv({got.data(), kBytes}, 0, tag));
          ASSERT_EQ(got, data[tag]) << round << ": " << tag;
        }
      }
    }
  });
}

// What a message says of consumed ones is old when it has waited in its slot while hundreds passed
// the other way; taken for new it would free slots in which messages wait.
TEST(PointToPoint, AMessageThatHasWaitedForLongSaysNothingNew) {
  WorldOfThreads(2).run([](Communicator& c) {
    constexpr uint64_t kBytes = 5000;
    constexpr int kWait = static_cast<int>(kSlotDepth);
    for (int passed = 240; passed <= 264; ++passed) {
      std::vector<uint8_t> one(kBytes);
      if (c.rank() == 0) finish(c, c.send({message(1, kBytes).data(), kBytes}, 1, 1));
      finish(c, c.barrier());
      for (int i = 0; i < passed; ++i) {
        if (c.rank() == 1) finish(c, c.send({one.data(), kBytes}, 0, 2));
        if (c.rank() == 0) finish(c, c.recv({one.data(), kBytes}, 1, 2));
      }
      std::vector<std::vector<uint8_t>> sent;
      std::vector<WorkPtr> works;
      for (int i = 0; i < 2 * kWait; ++i) sent.push_back(message(i, kBytes));
      for (int i = 0; i < kWait && c.rank() == 1; ++i) {
        works.push_back(started(c.send({sent[i].data(), kBytes}, 0, 3 + i)));
      }
      if (c.rank() == 1) finish(c, c.recv({one.data(), kBytes}, 0, 1));
      for (int i = kWait; i < 2 * kWait && c.rank() == 1; ++i) {
        works.push_back(started(c.send({sent[i].data(), kBytes}, 0, 3 + i)));
      }
      for (int i = 0; i < 2 * kWait && c.rank() == 0; ++i) {
        finish(c, c.recv({one.data(), kBytes}, 1, 3 + i));
        ASSERT_EQ(one, sent[i]) << "message " << i << ", after " << passed;
      }
      for (const WorkPtr& work : works) ASSERT_TRUE(c.wait(*work, -1, {}).ok());
    }
  });
}

TEST(PointToPoint, EverybodySendsBeforeAnybodyReceives) {
  WorldOfThreads(4).run([](Communicator& c) {
    constexpr uint64_t kBytes = 1'000'000;
    std::vector<WorkPtr> works;
    const std::vector<uint8_t> mine = message(c.rank(), kBytes);
    std::vector<std::vector<uint8_t>> got(c.size(), std::vector<uint8_t>(kBytes));
    for (int r = 0; r < c.size(); ++r) {
      if (r != c.rank()) works.push_back(started(c.send({mine.data(), kBytes}, r, 0)));
    }
    for (int r = 0; r < c.size(); ++r) {
      if (r != c.rank()) works.push_back(started(c.recv({got[r].data(), kBytes}, r, 0)));
    }
    for (const WorkPtr& work : works) ASSERT_TRUE(c.wait(*work, -1, {}).ok());
    for (int r = 0; r < c.size(); ++r) {
      if (r == c.rank()) continue;
      ASSERT_EQ(got[r], message(r, kBytes));
    }
  });
}

TEST(PointToPoint, AnySourceSaysWho) {
  WorldOfThreads(4).run([](Communicator& c) {
    constexpr uint64_t kBytes = 300;
    if (c.rank() != 2) {
      const std::vector<uint8_t> mine = message(c.rank(), kBytes);
      finish(c, c.send({mine.data(), kBytes}, 2, 5));
      return;
    }
    std::vector<bool> seen(4);
    for (int i = 0; i < 3; ++i) {
      std::vector<uint8_t> got(kBytes);
      const WorkPtr work = started(c.recv({got.data(), kBytes}, kAnySource, 5));
      ASSERT_TRUE(c.wait(*work, -1, {}).ok());
      ASSERT_EQ(got, message(work->source_rank(), kBytes));
      ASSERT_FALSE(seen[work->source_rank()]);
      seen[work->source_rank()] = true;
    }
  });
}

TEST(PointToPoint, UnequalSizesFailOnBothSidesAndHarmNothing) {
  WorldOfThreads(2).run([](Communicator& c) {
    for (const uint64_t bytes : {8, 1000, 100'000}) {
      std::vector<uint8_t> data(2 * bytes);
      auto work = c.rank() == 0 ? c.send({data.data(), bytes}, 1, 0)
                                : c.recv({data.data(), bytes + 1}, 0, 0);
      const Status status = c.wait(*work.value(), -1, {});
      // An eager message has left its sender before anybody could object.
      const bool eager_sender = bytes <= 1000 && c.rank() == 0;
      ASSERT_EQ(status.code(), eager_sender ? StatusCode::Ok : StatusCode::Mismatch);
      ASSERT_EQ(status.message().find("equal size") != std::string::npos, !eager_sender);
    }
    finish(c, c.barrier());
    int value = c.rank() == 0 ? 42 : 0;
    finish(c, c.rank() == 0 ? c.send({&value, 4}, 1, 0) : c.recv({&value, 4}, 0, 0));
    ASSERT_EQ(value, 42);
  });
}

TEST(PointToPoint, PeersOutOfRangeAreRefusedAtTheCall) {
  WorldOfThreads(2).run([](Communicator& c) {
    for (const int peer : {-2, 2}) {
      const auto sent = c.send({nullptr, 0}, peer, 0);
      ASSERT_EQ(sent.status().code(), StatusCode::InvalidArgument);
      ASSERT_NE(sent.status().message().find("destination=" + std::to_string(peer)),
                std::string::npos);
    }
  });
}

}  // namespace
}  // namespace rdmacoll::p2p_test
