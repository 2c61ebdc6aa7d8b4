// What goes wrong on the emulated network: states, peers that vanish, ports, injected errors.
#include <cerrno>

#include "tests/unit/fake_verbs/fake_pair.h"

namespace rdmacoll::fake::failure_test {
namespace {

TEST(FakeQueuePair, StatesNeedTheirAttributesInOrder) {
  FakePair pair(1, false);
  const FakeSide& one = pair.side[0];
  const FakeSide& other = pair.side[1];
  EXPECT_EQ(one.receive_from(pair.table, other), EINVAL);
  EXPECT_EQ(one.start(pair.table), EINVAL);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  EXPECT_EQ(pair.table.modify_qp(one.queue_pair, &attributes,
                                 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT),
            EINVAL);
  EXPECT_EQ(pair.table.modify_qp(
                one.queue_pair, &attributes,
                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY),
            EINVAL);
  EXPECT_EQ(one.initialise(pair.table), 0);
  EXPECT_EQ(one.start(pair.table), EINVAL);
  EXPECT_EQ(one.receive_from(pair.table, other), 0);
  ibv_send_wr request{};
  EXPECT_EQ(pair.send(&request), EINVAL);  // not yet ready to send
  EXPECT_EQ(one.start(pair.table), 0);
  EXPECT_EQ(pair.side[1].queue_pair->qp_num, one.queue_pair->qp_num);  // as devices do
}

TEST(FakeQueuePair, SendsAndReceivesAreFlushed) {
  FakePair pair;
  ASSERT_EQ(pair.post_receive(0, 5), 0);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(pair.table.modify_qp(pair.side[0].queue_pair, &attributes, IBV_QP_STATE), 0);
  const ibv_wc receive = pair.next(0);
  EXPECT_EQ(receive.wr_id, 5u);
  EXPECT_EQ(receive.status, IBV_WC_WR_FLUSH_ERR);
  ibv_sge piece = pair.side[0].piece(0, 8);
  ibv_send_wr request = pair.write(&piece, 0, 6);  // not signalled: reported all the same
  ASSERT_EQ(pair.send(&request), 0);
  const ibv_wc send = pair.next(0);
  EXPECT_EQ(send.wr_id, 6u);
  EXPECT_EQ(send.status, IBV_WC_WR_FLUSH_ERR);
}

TEST(FakeQueuePair, OrderOfDestructionIsChecked) {
  FakePair pair;
  const FakeSide& one = pair.side[0];
  EXPECT_EQ(pair.table.dealloc_pd(one.pd), EBUSY);
  EXPECT_EQ(pair.table.destroy_cq(one.queue), EBUSY);
  EXPECT_EQ(pair.table.destroy_comp_channel(one.channel), EBUSY);
  EXPECT_EQ(pair.table.close_device(one.context), EBUSY);
  EXPECT_NE(pair.network.leaks(), "");
}

enum class End { Kill, PortDown, Error };

TEST(FakeFailure, NobodyAnswers) {
  for (const End end : {End::Kill, End::PortDown, End::Error}) {
    FakePair pair;
    if (end == End::Kill) pair.network.kill("fake1");
    if (end == End::PortDown) pair.network.set_port("fake1", IBV_PORT_DOWN);
    if (end == End::Error) {
      ibv_qp_attr attributes{};
      attributes.qp_state = IBV_QPS_ERR;
      ASSERT_EQ(pair.table.modify_qp(pair.side[1].queue_pair, &attributes, IBV_QP_STATE), 0);
    }
    ibv_sge piece = pair.side[0].piece(0, 8);
    ibv_send_wr request = pair.write(&piece, 0, 1);
    ASSERT_EQ(pair.send(&request), 0);
    const ibv_wc failed = pair.next(0);
    EXPECT_EQ(failed.status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(pair.network.counts().retries, 4u);
    EXPECT_EQ(pair.side[1].memory[0], std::byte{0});
  }
}

TEST(FakeFailure, APortThatComesBackInTimeIsForgiven) {
  FakePair pair;
  pair.network.set_port("fake1", IBV_PORT_DOWN);
  ibv_sge piece = pair.side[0].piece(0, 8);
  ibv_send_wr request = pair.write(&piece, 0, 1, IBV_SEND_SIGNALED);
  ASSERT_EQ(pair.send(&request), 0);
  pair.network.set_port("fake1", IBV_PORT_ACTIVE);
  const ibv_wc_status status = pair.next(0).status;
  EXPECT_TRUE(status == IBV_WC_SUCCESS || status == IBV_WC_RETRY_EXC_ERR);
  ibv_async_event event;
  for (const ibv_event_type expected : {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE}) {
    ASSERT_EQ(pair.table.get_async_event(pair.side[1].context, &event), 0);
    EXPECT_EQ(event.event_type, expected);
    pair.table.ack_async_event(&event);
  }
}

TEST(FakeFailure, InjectedErrorsHappen) {
  FakePair pair;
  pair.network.refuse_registrations("fake0", ENOMEM);
  std::byte memory[8];
  EXPECT_EQ(pair.table.reg_mr_iova2(pair.side[0].pd, memory, sizeof memory, 0, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  pair.network.refuse_queue_pairs("fake0", EAGAIN);
  ibv_qp_init_attr attributes{};
  EXPECT_EQ(pair.table.create_qp(pair.side[0].pd, &attributes), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  ibv_sge piece = pair.side[0].piece(0, 8);
  ibv_send_wr request = pair.write(&piece, 0, 1);
  pair.network.refuse_sends("fake0", EFAULT);
  EXPECT_EQ(pair.send(&request), EFAULT);
  pair.network.refuse_sends("fake0", 0);
  pair.network.fail_next_message("fake0", IBV_WC_GENERAL_ERR);
  EXPECT_EQ(pair.send(&request), 0);
  EXPECT_EQ(pair.next(0).status, IBV_WC_GENERAL_ERR);
}

}  // namespace
}  // namespace rdmacoll::fake::failure_test
