// QueuePair: its send and receive queues. Bring-up is in queue_pair_setup.cc.
// Floor: transport/verbs/connection. Thread: the driver.
#include "csrc/transport/verbs/connection/queue_pair.h"

#include <arpa/inet.h>

#include "csrc/base/check.h"

namespace rdmacoll::verbs {

ibv_send_wr& QueuePair::append(ibv_wr_opcode opcode, Remote remote) {
  RDMACOLL_CHECK(has_room(1));
  if (chained_ == kChainMax && error_ == 0) error_ = ring();
  if (chained_ == kChainMax) chained_ = 0;  // the call failed: the connection is about to end
  ++appended_;
  ibv_send_wr& request = chain_[chained_];
  if (chained_ > 0) chain_[chained_ - 1].next = &request;
  ++chained_;
  request = {};
  request.wr_id = WorkId{false, peer_, stripe_, static_cast<uint32_t>(appended_)}.pack();
  request.opcode = opcode;
  request.wr.rdma.remote_addr = remote.address;
  request.wr.rdma.rkey = remote.rkey;
  return request;
}

// Inline: the data is copied by the call.
void QueuePair::attach(ibv_send_wr& request, const void* data, uint32_t bytes) {
  ibv_sge& piece = pieces_[chained_ - 1];
  piece = {reinterpret_cast<uint64_t>(data), bytes, 0};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_INLINE;
}

void QueuePair::transfer(ibv_wr_opcode opcode, const std::byte* local, uint32_t bytes,
                         uint32_t lkey, Remote remote, uint64_t put) {
  ibv_send_wr& request = append(opcode, remote);
  ibv_sge& piece = pieces_[chained_ - 1];
  piece = {reinterpret_cast<uint64_t>(local), bytes, lkey};
  request.sg_list = &piece;
  request.num_sge = 1;
  if (opcode == IBV_WR_RDMA_WRITE && bytes <= inline_bytes_) request.send_flags = IBV_SEND_INLINE;
  last_put_ = put;
  wants_completion_ = true;
}

void QueuePair::write(const std::byte* source, uint32_t bytes, uint32_t lkey, Remote to,
                      uint64_t put) {
  transfer(IBV_WR_RDMA_WRITE, source, bytes, lkey, to, put);
}

void QueuePair::read(std::byte* destination, uint32_t bytes, uint32_t lkey, Remote from,
                     uint64_t put) {
  transfer(IBV_WR_RDMA_READ, destination, bytes, lkey, from, put);
}

void QueuePair::write_signal(const SignalRecord& record, Remote to, Immediate immediate) {
  ibv_send_wr& request = append(IBV_WR_RDMA_WRITE_WITH_IMM, to);
  records_[chained_ - 1] = record;
  attach(request, &records_[chained_ - 1], record.sent_bytes());
  request.imm_data = htonl(immediate.pack());
}

void QueuePair::write_word(const WindowWord& word, Remote to) {
  ibv_send_wr& request = append(IBV_WR_RDMA_WRITE, to);
  std::memcpy(&records_[chained_ - 1], &word, sizeof(word));
  attach(request, &records_[chained_ - 1], sizeof(word));
}

void QueuePair::notify(Immediate immediate) {
  append(IBV_WR_RDMA_WRITE_WITH_IMM, {0, 0}).imm_data = htonl(immediate.pack());
}

void QueuePair::probe(Remote to) {
  append(IBV_WR_RDMA_WRITE, to);
  wants_completion_ = true;
}

int QueuePair::ring() {
  if (error_ != 0 || chained_ == 0) return error_;
  unsignalled_ += chained_;
  ibv_send_wr& last = chain_[chained_ - 1];
  if (wants_completion_ || unsignalled_ >= kSignalEvery) {
    last.send_flags |= IBV_SEND_SIGNALED;
    puts_by_sequence_[appended_ % kSendDepth] = last_put_;
    unsignalled_ = 0;
    wants_completion_ = false;
  }
  chained_ = 0;
  ibv_send_wr* bad = nullptr;
  error_ = table_.post_send(queue_pair_, chain_.data(), &bad);
  return error_;
}

void QueuePair::retire(uint32_t sequence) {
  retired_ += static_cast<uint32_t>(sequence - static_cast<uint32_t>(retired_));
  done_put_ = puts_by_sequence_[retired_ % kSendDepth];
}

int QueuePair::post_receive_batch() {
  ibv_recv_wr* bad = nullptr;
  return table_.post_recv(queue_pair_, receives_.data(), &bad);
}

}  // namespace rdmacoll::verbs
