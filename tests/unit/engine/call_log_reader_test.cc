// CallLogReader: whom it could read, and that one that cannot be read keeps no other waiting.
#include "csrc/engine/failure/call_log_reader.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/read_peers.h"

namespace rdmacoll::call_log_reader_test {
namespace {

using Answer = ReadPeers::Answer;

// The rank's only call so far.
void begin_call(ReadPeers& peers, uint32_t rank, uint64_t sequence, uint16_t signature) {
  CallLog(peers.block(rank) + peers.layout.call_log().own)
      .begin({.sequence = sequence, .signature = signature});
}

struct CallLogReaderTest : testing::Test {
  void call(uint32_t rank, uint64_t sequence, uint16_t signature) {
    begin_call(peers, rank, sequence, signature);
  }
  std::string finding(uint32_t rank) const { return reader.finding(rank, 1); }

  ReadPeers peers{4};
  CallLogReader reader{*peers.links};
};

TEST_F(CallLogReaderTest, FindsWhoCalledSomethingElse) {
  for (const uint32_t rank : {0u, 1u, 2u, 3u}) call(rank, 1, rank == 2 ? 8 : 7);
  EXPECT_EQ(reader.differing({.sequence = 1, .signature = 7}), std::nullopt) << "nobody was asked";
  reader.begin({1, 2, 3});
  ASSERT_TRUE(reader.done());
  EXPECT_EQ(reader.differing({.sequence = 1, .signature = 7}), 2u);
}

TEST_F(CallLogReaderTest, TheFirstThatNotAllHaveEndedIsWhereTheyPart) {
  call(0, 3, 7);
  call(1, 2, 7);
  EXPECT_EQ(reader.first_open(), 3u) << "by its own log alone";
  reader.begin({1, 2});
  ASSERT_TRUE(reader.done());
  EXPECT_EQ(reader.first_open(), 2u);
  EXPECT_NE(reader.finding(1, 3).find("has not called #3"), std::string::npos);
  EXPECT_EQ(finding(2), "") << "it has called nothing";
}

TEST_F(CallLogReaderTest, OneThatCannotBeReadKeepsNoneWaiting) {
  for (const uint32_t rank : {1u, 2u, 3u}) call(rank, 1, 7);
  peers.answers = {{1, Answer::Refuses}, {2, Answer::Later}};
  reader.begin({1, 2, 3});
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(finding(1), "could not be asked");
  EXPECT_EQ(finding(2), "could not be asked");
  EXPECT_TRUE(finding(3).starts_with("in ")) << finding(3);
  peers.answers[1] = Answer::AtOnce;
  peers.deliver();
  EXPECT_TRUE(reader.done());
  EXPECT_TRUE(finding(1).starts_with("in ")) << finding(1);
  EXPECT_TRUE(finding(2).starts_with("in ")) << finding(2);
}

TEST_F(CallLogReaderTest, WhatWasAskedBeforeDoesNotPassForAnAnswerNow) {
  for (const uint32_t rank : {1u, 2u, 3u}) call(rank, 1, 7);
  peers.answers[1] = Answer::Later;
  reader.begin({1, 2});
  EXPECT_FALSE(reader.done());
  reader.begin({3, 2});  // before rank 1 has answered
  EXPECT_TRUE(reader.done()) << "rank 1 is waited for";
  EXPECT_EQ(finding(1), "was not asked");
  call(3, 2, 8);
  peers.deliver();
  EXPECT_EQ(finding(1), "was not asked");
  EXPECT_EQ(reader.differing({.sequence = 1, .signature = 7}), std::nullopt);
}

// Where there are fewer places than ranks, they share them.
TEST(CallLogReader, OneRanksLogDoesNotPassForAnothers) {
  ReadPeers peers(kMaxCallLogsRead + 2);
  CallLogReader reader(*peers.links);
  begin_call(peers, 1, 1, 8);
  begin_call(peers, 3, 1, 7);
  peers.answers[1] = Answer::Later;
  reader.begin({1});
  EXPECT_FALSE(reader.done());
  reader.begin({3});
  EXPECT_FALSE(reader.done());
  peers.deliver();
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.differing({.sequence = 1, .signature = 8}), 3u);
}

}  // namespace
}  // namespace rdmacoll::call_log_reader_test
