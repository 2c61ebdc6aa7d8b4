// Datagrams, completion channels, and what ends a test at once.
#include <poll.h>

#include <cstring>
#include <set>

#include "tests/unit/fake_verbs/fake_pair.h"

namespace rdmacoll::fake::datagram_test {
namespace {

constexpr uint32_t kKey = 0x1234;
constexpr uint32_t kSlotBytes = 128;
constexpr size_t kGrhBytes = 40;

// Datagram queue pairs on the two sides of a pair.
struct Listeners {
  explicit Listeners(FakePair& owner) : pair(owner) {
    for (int i = 0; i < 2; ++i) {
      ibv_qp_init_attr attributes{};
      attributes.send_cq = attributes.recv_cq = pair.side[i].queue;
      attributes.qp_type = IBV_QPT_UD;
      attributes.cap = {16, 16, 1, 1, 0};
      listener[i] = pair.table.create_qp(pair.side[i].pd, &attributes);
      ibv_qp_attr state{};
      state.qp_state = IBV_QPS_INIT;
      state.port_num = 1;
      state.qkey = kKey;
      EXPECT_EQ(pair.table.modify_qp(listener[i], &state,
                                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
                0);
      state.qp_state = IBV_QPS_RTR;
      EXPECT_EQ(pair.table.modify_qp(listener[i], &state, IBV_QP_STATE), 0);
      state.qp_state = IBV_QPS_RTS;
      EXPECT_EQ(pair.table.modify_qp(listener[i], &state, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    }
    ibv_ah_attr vector{};
    vector.port_num = 1;
    vector.is_global = 1;
    vector.grh.sgid_index = 3;
    vector.grh.dgid = pair.side[1].gid(pair.table);
    address = pair.table.create_ah(pair.side[0].pd, &vector);
  }
  ~Listeners() {
    for (ibv_qp* one : listener) pair.table.destroy_qp(one);
    pair.table.destroy_ah(address);
  }

  void post_receive(uint64_t id) {
    ibv_sge piece = pair.side[1].piece(id * kSlotBytes, kSlotBytes);
    ibv_recv_wr request{};
    request.wr_id = id;
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(pair.table.post_recv(listener[1], &request, &bad), 0);
  }
  // One of 8 bytes, all of them `number`; until its completion.
  void send(int number, uint32_t key = kKey) {
    std::memset(pair.side[0].memory.data(), number, 8);
    ibv_sge piece = pair.side[0].piece(0, 8);
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.ud.ah = address;
    request.wr.ud.remote_qpn = listener[1]->qp_num;
    request.wr.ud.remote_qkey = key;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(pair.table.post_send(listener[0], &request, &bad), 0);
    EXPECT_EQ(pair.next(0).status, IBV_WC_SUCCESS);
  }
  int received(const ibv_wc& completion) const {
    const size_t at = completion.wr_id * kSlotBytes + kGrhBytes;
    return static_cast<int>(pair.side[1].memory[at]);
  }

  FakePair& pair;
  ibv_qp* listener[2];
  ibv_ah* address;
};

TEST(FakeDatagram, ComesBehindTheSpaceOfAHeaderAndInAnyOrder) {
  int reordered = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    FakePair pair(seed);
    Listeners listeners(pair);
    for (uint64_t i = 0; i < 8; ++i) listeners.post_receive(i);
    for (int i = 0; i < 8; ++i) listeners.send(i + 1);
    std::set<int> seen;
    int before = 0;
    for (int i = 0; i < 8; ++i) {
      const ibv_wc completion = pair.next(1);
      EXPECT_EQ(completion.byte_len, kGrhBytes + 8);
      EXPECT_EQ(completion.opcode, IBV_WC_RECV);
      const int now = listeners.received(completion);
      seen.insert(now);
      reordered += now < before;
      before = now;
    }
    EXPECT_EQ(seen.size(), 8u);
  }
  EXPECT_GT(reordered, 0);
}

TEST(FakeDatagram, IsLostWithoutAReceiveOrWithAWrongKeyOrOnTheWay) {
  FakePair pair;
  Listeners listeners(pair);
  const auto wait_for_loss = [&](uint64_t number) {
    while (pair.network.counts().datagrams_lost < number) std::this_thread::yield();
  };
  listeners.send(1);
  wait_for_loss(1);
  listeners.post_receive(0);
  listeners.send(2, kKey + 1);
  pair.network.lose_datagrams(1);
  listeners.send(3);
  wait_for_loss(3);
  ibv_wc completion;
  EXPECT_EQ(pair.table.poll_cq(pair.side[1].queue, 1, &completion), 0);
  pair.network.lose_datagrams(0);
  listeners.send(4);
  EXPECT_EQ(listeners.received(pair.next(1)), 4);
}

TEST(FakeChannel, TellsOnceWhenItWasAskedTo) {
  FakePair pair;
  const FakeSide& one = pair.side[0];
  ibv_sge piece = one.piece(0, 8);
  ibv_send_wr request = pair.write(&piece, 0, 1, IBV_SEND_SIGNALED);
  ASSERT_EQ(pair.send(&request), 0);
  pair.next(0);  // nobody asked
  pollfd readable{one.channel->fd, POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 0), 0);
  ASSERT_EQ(pair.table.req_notify_cq(one.queue, 0), 0);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(pair.send(&request), 0);
  EXPECT_EQ(::poll(&readable, 1, 60'000), 1);
  ibv_cq* queue = nullptr;
  void* user = nullptr;
  ASSERT_EQ(pair.table.get_cq_event(one.channel, &queue, &user), 0);
  EXPECT_EQ(queue, one.queue);
  pair.table.ack_cq_events(queue, 1);
  for (int i = 0; i < 2; ++i) pair.next(0);
  EXPECT_EQ(::poll(&readable, 1, 0), 0);
}

TEST(FakeMisuseDeathTest, EndsTheTest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        FakePair pair;
        pair.table.resize_cq(pair.side[0].queue, 1);
        ibv_sge piece = pair.side[0].piece(0, 8);
        ibv_send_wr request = pair.write(&piece, 0, 1, IBV_SEND_SIGNALED);
        for (int i = 0; i < 2; ++i) pair.send(&request);
        while (true) std::this_thread::yield();
      },
      "a completion queue overflows");
}

}  // namespace
}  // namespace rdmacoll::fake::datagram_test
