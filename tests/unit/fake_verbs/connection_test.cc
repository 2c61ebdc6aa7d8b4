// Connections of the emulated device: order, places, refusals.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/unit/fake_verbs/fake_pair.h"

namespace rdmacoll::fake::connection_test {
namespace {

constexpr unsigned kSignalled = IBV_SEND_SIGNALED;

// `number` everywhere in `count` bytes at an offset.
void fill(FakeSide& side, size_t offset, size_t count, int number) {
  std::memset(side.memory.data() + offset, number, count);
}
bool filled(const FakeSide& side, size_t offset, size_t count, int number) {
  return std::all_of(side.memory.begin() + static_cast<std::ptrdiff_t>(offset),
                     side.memory.begin() + static_cast<std::ptrdiff_t>(offset + count),
                     [&](std::byte byte) { return byte == static_cast<std::byte>(number); });
}

TEST(FakeConnection, WritesBeforeAnImmediateAreThereWithIt) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    FakePair pair(seed);
    ASSERT_EQ(pair.post_receive(1, 77), 0);
    constexpr size_t kPart = 5'003;
    ibv_send_wr requests[4];
    ibv_sge pieces[4];
    for (size_t i = 0; i < 4; ++i) {
      fill(pair.side[0], i * kPart, kPart, static_cast<int>(i + 1));
      pieces[i] = pair.side[0].piece(i * kPart, kPart);
      requests[i] = pair.write(&pieces[i], i * kPart, i);
      requests[i].next = i < 3 ? &requests[i + 1] : nullptr;
    }
    requests[3].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    requests[3].imm_data = 0xABCD;
    requests[3].send_flags = kSignalled;
    ASSERT_EQ(pair.send(&requests[0]), 0);
    const ibv_wc seen = pair.next(1);
    EXPECT_EQ(seen.status, IBV_WC_SUCCESS);
    EXPECT_EQ(seen.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(seen.wr_id, 77u);
    EXPECT_EQ(seen.imm_data, 0xABCDu);
    EXPECT_EQ(seen.byte_len, kPart);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(filled(pair.side[1], i * kPart, kPart, static_cast<int>(i + 1)));
    }
    const ibv_wc sent = pair.next(0);  // the signalled one only
    EXPECT_EQ(sent.wr_id, 3u);
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  }
}

// The sender knows that its source is free, and that is all it knows.
TEST(FakeConnection, AnAcknowledgedWriteMayLandLater) {
  int late = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    FakePair pair(seed);
    fill(pair.side[0], 0, kBytes, 1);
    ibv_sge piece = pair.side[0].piece(0, kBytes);
    ibv_send_wr request = pair.write(&piece, 0, 1, kSignalled);
    ASSERT_EQ(pair.send(&request), 0);
    pair.next(0);
    // What the sender writes now is not seen at the other side, ever.
    fill(pair.side[0], 0, kBytes, 2);
    ibv_wc completion;
    ASSERT_EQ(pair.post_receive(1, 0), 0);
    late += pair.table.poll_cq(pair.side[1].queue, 1, &completion) == 0;
    ibv_send_wr flag = pair.write(nullptr, 0, 2);
    flag.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    ASSERT_EQ(pair.send(&flag), 0);
    pair.next(1);
    EXPECT_TRUE(filled(pair.side[1], 0, kBytes, 1));
  }
  EXPECT_GT(late, 0);
}

TEST(FakeConnection, AReadSeesWhatWasWrittenBeforeIt) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    FakePair pair(seed);
    fill(pair.side[0], 0, 1000, 9);
    ibv_sge piece = pair.side[0].piece(0, 1000);
    ibv_sge back[2] = {pair.side[0].piece(5000, 300), pair.side[0].piece(7000, 700)};
    ibv_send_wr write = pair.write(&piece, 100, 1);
    ibv_send_wr read = pair.write(nullptr, 100, 2, kSignalled);
    read.opcode = IBV_WR_RDMA_READ;
    read.sg_list = back;
    read.num_sge = 2;
    write.next = &read;
    ASSERT_EQ(pair.send(&write), 0);
    const ibv_wc done = pair.next(0);
    EXPECT_EQ(done.wr_id, 2u);
    EXPECT_EQ(done.opcode, IBV_WC_RDMA_READ);
    EXPECT_TRUE(filled(pair.side[0], 5000, 300, 9));
    EXPECT_TRUE(filled(pair.side[0], 7000, 700, 9));
  }
}

TEST(FakeConnection, InlineDataIsTakenByTheCall) {
  FakePair pair;
  ASSERT_EQ(pair.post_receive(1, 0), 0);
  std::byte data[64];
  std::memset(data, 5, sizeof data);
  ibv_sge piece{reinterpret_cast<uint64_t>(data), sizeof data, 0};
  ibv_send_wr request = pair.write(&piece, 0, 1, IBV_SEND_INLINE);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  ASSERT_EQ(pair.send(&request), 0);
  std::memset(data, 6, sizeof data);
  pair.next(1);
  EXPECT_TRUE(filled(pair.side[1], 0, sizeof data, 5));
  ibv_sge longer = pair.side[0].piece(0, 65);
  ibv_send_wr refused = pair.write(&longer, 0, 1, IBV_SEND_INLINE);
  EXPECT_EQ(pair.send(&refused), EINVAL);
}

TEST(FakeConnection, UnsignalledRequestsKeepTheirPlacesUntilALaterOneIsTaken) {
  FakePair pair;
  ibv_sge piece = pair.side[0].piece(0, 8);
  ibv_send_wr request = pair.write(&piece, 0, 1);
  for (uint32_t i = 0; i + 1 < kSends; ++i) ASSERT_EQ(pair.send(&request), 0);
  request.send_flags = kSignalled;
  ASSERT_EQ(pair.send(&request), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // done, but not taken
  EXPECT_EQ(pair.send(&request), ENOMEM);
  EXPECT_EQ(pair.next(0).status, IBV_WC_SUCCESS);
  for (uint32_t i = 0; i < kSends; ++i) EXPECT_EQ(pair.send(&request), 0);
  EXPECT_EQ(pair.send(&request), ENOMEM);
}

TEST(FakeConnection, ReceivesKeepTheirPlacesUntilTheyAreTaken) {
  FakePair pair;
  for (uint32_t i = 0; i < kReceives; ++i) EXPECT_EQ(pair.post_receive(1, i), 0);
  EXPECT_EQ(pair.post_receive(1, 9), ENOMEM);
}

TEST(FakeConnection, WithoutAReceiveAnImmediateIsTriedAgainAndThenFails) {
  FakePair pair;
  ibv_send_wr request = pair.write(nullptr, 0, 1, kSignalled);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  ASSERT_EQ(pair.send(&request), 0);
  while (pair.network.counts().receivers_not_ready == 0) std::this_thread::yield();
  ASSERT_EQ(pair.post_receive(1, 0), 0);
  const ibv_wc first = pair.next(0);
  ASSERT_TRUE(first.status == IBV_WC_SUCCESS || first.status == IBV_WC_RNR_RETRY_EXC_ERR);
  if (first.status != IBV_WC_SUCCESS) return;  // the machine was too slow
  ASSERT_EQ(pair.send(&request), 0);
  EXPECT_EQ(pair.next(0).status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_GE(pair.network.counts().receivers_not_ready, 4u);  // all retries were spent
}

struct Refusal {
  const char* name;
  void (*spoil)(FakePair&, ibv_send_wr&, ibv_sge&);
  ibv_wc_status status;
};

TEST(FakeConnection, WhatIsNotAllowedEndsBothSides) {
  const Refusal refusals[] = {
      {"rkey", [](FakePair&, ibv_send_wr& wr, ibv_sge&) { wr.wr.rdma.rkey += 100; },
       IBV_WC_REM_ACCESS_ERR},
      {"lkey as rkey",
       [](FakePair& pair, ibv_send_wr& wr, ibv_sge&) {
         wr.wr.rdma.rkey = pair.side[1].region->lkey;
       },
       IBV_WC_REM_ACCESS_ERR},
      {"bounds", [](FakePair&, ibv_send_wr& wr, ibv_sge&) { wr.wr.rdma.remote_addr += kBytes - 7; },
       IBV_WC_REM_ACCESS_ERR},
      {"the other's pd",
       [](FakePair& pair, ibv_send_wr& wr, ibv_sge&) {
         wr.wr.rdma.rkey = pair.side[0].region->rkey;
       },
       IBV_WC_REM_ACCESS_ERR},
      {"deregistered",
       [](FakePair& pair, ibv_send_wr&, ibv_sge&) {
         pair.table.dereg_mr(std::exchange(pair.side[1].region, nullptr));
       },
       IBV_WC_REM_ACCESS_ERR},
      {"lkey", [](FakePair&, ibv_send_wr&, ibv_sge& piece) { piece.lkey += 1; },
       IBV_WC_LOC_PROT_ERR},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    FakePair pair(3, true, 1 + static_cast<int>(refusal.status == IBV_WC_REM_ACCESS_ERR));
    for (uint64_t i = 0; i < 2; ++i) ASSERT_EQ(pair.post_receive(1, i), 0);
    ibv_sge good = pair.side[0].piece(0, 8);
    ibv_sge bad = good;
    ibv_send_wr requests[3] = {pair.write(&good, 0, 1), pair.write(&bad, 0, 2),
                               pair.write(&good, 0, 3)};
    requests[0].next = &requests[1];
    requests[1].next = &requests[2];
    refusal.spoil(pair, requests[1], bad);
    requests[0].send_flags = kSignalled;
    if (pair.side[1].region == nullptr) requests[0].next = requests[1].next = nullptr;
    ASSERT_EQ(pair.send(pair.side[1].region == nullptr ? &requests[1] : &requests[0]), 0);
    if (pair.side[1].region != nullptr) {
      EXPECT_EQ(pair.next(0).status, IBV_WC_SUCCESS);
    }
    const ibv_wc failed = pair.next(0);
    EXPECT_EQ(failed.wr_id, 2u);
    EXPECT_EQ(failed.status, refusal.status);
    if (pair.side[1].region != nullptr) {
      EXPECT_EQ(pair.next(0).status, IBV_WC_WR_FLUSH_ERR);
    }
    if (refusal.status != IBV_WC_REM_ACCESS_ERR) continue;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(pair.next(1).status, IBV_WC_WR_FLUSH_ERR);
  }
}

}  // namespace
}  // namespace rdmacoll::fake::connection_test
