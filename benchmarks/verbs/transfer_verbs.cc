// The same transfer by verbs alone, beside csrc/remote: one WRITE_WITH_IMM there, and one without
// data back. Of 8 bytes it is the ping-pong that a write with a notification is to be as fast as.
//   transfer_verbs [reads] [rounds, default 15 [bytes ...]]
// The device is chosen as the engine does: RDMACOLL_TRANSPORT=verbs, RDMACOLL_HCA.
// Floor: benchmarks. Thread: a process's main one.
#include <sched.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "benchmarks/transfer/pairs.h"
#include "benchmarks/transfer/remote_way.h"
#include "csrc/transport/verbs/connection/queue_pair.h"

namespace rdmacoll::bench {
namespace {

constexpr uint32_t kDepth = 64;
constexpr uint32_t kCompletionEvery = kDepth / 2;  // of what is sent
constexpr uint32_t kMostInlineBytes = 64;
constexpr int kPollsBetweenYields = 64;  // the kernel may be the device

void need(int error, const char* what) {
  if (error != 0) give_up(std::string("verbs, ") + what + ": " + std::strerror(error));
}

class VerbsWay final : public Way {
 public:
  explicit VerbsWay(const Place& place);

  void prepare(uint64_t bytes) override;
  void send() override {
    post(tensor_.size());
    await();
  }
  void serve(int count) override {
    for (int i = 0; i < count; ++i) {
      await();
      use(place_, tensor_.data(), tensor_.size());
      post(0);
    }
  }
  std::byte* tensor() override { return tensor_.data(); }

 private:
  // Of memory that the other writes to; in memory of the two.
  struct Target {
    std::atomic<int> number;
    uint64_t address;
    uint32_t rkey;
  };
  struct Name {
    PortAddress port;
    uint32_t queue_pair;
  };
  void join(const Name& other);
  void receive();
  void post(uint64_t bytes);
  void await();

  const Place place_;
  VerbsTable table_ = needed(load_libibverbs());
  const Config config_ = needed(Config::from_environment());
  const VerbsConfig verbs_ = needed(VerbsConfig::read(config_.settings));
  std::unique_ptr<Device> device_ = needed(Device::open(table_, config_));
  ibv_cq* completions_ = nullptr;
  ibv_qp* queue_pair_ = nullptr;
  ibv_mr* registered_ = nullptr;
  Target* const targets_;
  std::vector<std::byte> tensor_;
  int prepared_ = 0;
  uint32_t posted_ = 0;
};

VerbsWay::VerbsWay(const Place& place)
    : place_(place), targets_(reinterpret_cast<Target*>(place.shared)) {
  completions_ = table_.create_cq(device_->context(), 2 * kDepth, nullptr, nullptr, 0);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {.max_send_wr = kDepth,
                .max_recv_wr = kDepth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = kMostInlineBytes};
  queue_pair_ = table_.create_qp(device_->pd(), &wanted);
  if (queue_pair_ == nullptr) need(errno, "a queue pair");
  const Name mine{device_->address(), queue_pair_->qp_num};
  MeetingBootstrap meeting(*place.meeting, place.rank(), 2);
  const SteadyClock clock;
  const auto told =
      needed(meeting.all_gather(std::string(reinterpret_cast<const char*>(&mine), sizeof mine),
                                Deadline::after_ms(clock, 60'000)));
  Name other;
  std::memcpy(&other, told[static_cast<size_t>(1 - place.rank())].data(), sizeof other);
  join(other);
}

void VerbsWay::join(const Name& other) {
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = device_->port();
  init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  need(table_.modify_qp(queue_pair_, &init,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
       "INIT");
  for (uint32_t i = 0; i < kDepth; ++i) receive();
  ibv_qp_attr ready{};
  ready.qp_state = IBV_QPS_RTR;
  ready.path_mtu = static_cast<ibv_mtu>(device_->address().mtu);
  ready.dest_qp_num = other.queue_pair;
  ready.ah_attr = verbs::address_vector(*device_, other.port, verbs_);
  need(table_.modify_qp(queue_pair_, &ready,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
       "RTR");
  ibv_qp_attr sends{};
  sends.qp_state = IBV_QPS_RTS;
  sends.timeout = static_cast<uint8_t>(verbs_.timeout_exponent);
  sends.retry_cnt = static_cast<uint8_t>(verbs_.retry_count);
  sends.rnr_retry = sends.retry_cnt;
  need(table_.modify_qp(queue_pair_, &sends,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
       "RTS");
}

void VerbsWay::prepare(uint64_t bytes) {
  if (registered_ != nullptr) need(table_.dereg_mr(registered_), "memory of before");
  tensor_.assign(bytes, std::byte{1});
  const auto address = reinterpret_cast<uint64_t>(tensor_.data());
  registered_ = table_.reg_mr_iova2(device_->pd(), tensor_.data(), bytes, address,
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (registered_ == nullptr) need(errno, "memory");
  Target& mine = targets_[place_.rank()];
  mine.address = address;
  mine.rkey = registered_->rkey;
  mine.number.store(++prepared_);
  while (targets_[1 - place_.rank()].number.load() < prepared_) sched_yield();
}

void VerbsWay::receive() {
  ibv_recv_wr nothing{};
  ibv_recv_wr* bad = nullptr;
  need(table_.post_recv(queue_pair_, &nothing, &bad), "a receive");
}

void VerbsWay::post(uint64_t bytes) {
  const Target& to = targets_[1 - place_.rank()];
  ibv_sge piece{reinterpret_cast<uint64_t>(tensor_.data()), static_cast<uint32_t>(bytes),
                registered_->lkey};
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.sg_list = &piece;
  request.num_sge = bytes > 0 ? 1 : 0;
  if (bytes > 0 && bytes <= kMostInlineBytes) request.send_flags = IBV_SEND_INLINE;
  if (++posted_ % kCompletionEvery == 0) request.send_flags |= IBV_SEND_SIGNALED;
  request.wr.rdma = {to.address, to.rkey};
  ibv_send_wr* bad = nullptr;
  need(table_.post_send(queue_pair_, &request, &bad), "a write");
}

void VerbsWay::await() {
  ibv_wc done{};
  for (int polls = 1;; ++polls) {
    const int count = table_.poll_cq(completions_, 1, &done);
    if (count == 0 && polls % kPollsBetweenYields == 0) sched_yield();
    if (count == 0) continue;
    if (done.status != IBV_WC_SUCCESS)
      give_up("verbs: a completion of status " + std::to_string(done.status));
    if (done.opcode == IBV_WC_RECV_RDMA_WITH_IMM) return receive();
  }
}

}  // namespace
}  // namespace rdmacoll::bench

int main(int argc, char** argv) {
  using namespace rdmacoll::bench;
  const auto ours = [](const Place& place) { return std::make_unique<RemoteWay>(place); };
  return compare(
      {
          {"rdma", ours},
          {"rdma again", ours},
          {"bare verbs", [](const Place& place) { return std::make_unique<VerbsWay>(place); }},
      },
      argc, argv);
}
