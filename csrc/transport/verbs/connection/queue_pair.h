// QueuePair: one reliable connection (RC): its bring-up, the chain of work requests that one call
// hands to the device, and the accounting of its queues.
// Floor: transport/verbs/connection. Thread: create and connect one; the rest the driver.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "csrc/base/status.h"
#include "csrc/transport/verbs/connection/wire.h"
#include "csrc/transport/verbs/device/device.h"
#include "csrc/transport/verbs/device/limits.h"
#include "csrc/transport/verbs/settings/settings.h"

namespace rdmacoll::verbs {

// Work request ids: whose completion it is.
struct WorkId {
  bool receive = false;
  uint16_t peer = 0;
  uint8_t stripe = 0;
  uint32_t sequence = 0;  // requests of the send queue up to and with this one, modulo 2^32

  uint64_t pack() const {
    return uint64_t{receive} << 63 | uint64_t{peer} << 40 | uint64_t{stripe} << 32 | sequence;
  }
  static WorkId unpack(uint64_t bits) {
    return {bits >> 63 != 0, static_cast<uint16_t>(bits >> 40), static_cast<uint8_t>(bits >> 32),
            static_cast<uint32_t>(bits)};
  }
};

class QueuePair {
 public:
  // In state INIT, with all its receives posted.
  static Result<std::unique_ptr<QueuePair>> create(const VerbsTable& table, const Device& device,
                                                   ibv_cq* completions, uint16_t peer,
                                                   uint8_t stripe);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  uint32_t number() const { return queue_pair_->qp_num; }
  // Joins it to the peer's; ready to receive, then to send.
  Status connect(const PortAddress& peer, uint32_t peer_number, uint32_t peer_sequence,
                 uint32_t my_sequence, const VerbsConfig& config);
  // Into the error state: nothing comes or goes any more. Any thread.
  void give_up();

  // --- send queue -----------------------------------------------------------------------------
  bool has_room(uint32_t requests) const { return appended_ - retired_ + requests <= kSendDepth; }
  bool idle() const { return appended_ == retired_; }

  struct Remote {
    uint64_t address;
    uint32_t rkey;
  };
  // Each appends one request, for which there must be room; ring() hands over what was appended.
  void write(const std::byte* source, uint32_t bytes, uint32_t lkey, Remote to, uint64_t put);
  void read(std::byte* destination, uint32_t bytes, uint32_t lkey, Remote from, uint64_t put);
  void write_signal(const SignalRecord& record, Remote to, Immediate immediate);
  void write_word(const WindowWord& word, Remote to);
  void notify(Immediate immediate);  // without data
  // Asks for a completion of what is appended, and so of all before it.
  void want_completion() { wants_completion_ = true; }
  void probe(Remote to);  // an empty write that is answered
  // 0, or the error of the call.
  int ring();
  bool chained() const { return chained_ > 0; }

  // The device is done with all requests up to this sequence.
  void retire(uint32_t sequence);
  // Up to which put (get) all parts that went over this queue pair are done; `newest` of them all.
  uint64_t done_up_to(uint64_t newest) const { return done_put_ == last_put_ ? newest : done_put_; }

  // --- receive queue --------------------------------------------------------------------------
  // 0, or the error of the call.
  int post_receive_batch();

 private:
  QueuePair(const VerbsTable& table, const Device& device, uint16_t peer, uint8_t stripe);
  ibv_send_wr& append(ibv_wr_opcode opcode, Remote remote);
  void transfer(ibv_wr_opcode opcode, const std::byte* local, uint32_t bytes, uint32_t lkey,
                Remote remote, uint64_t put);
  void attach(ibv_send_wr& request, const void* data, uint32_t bytes);
  Status to_init();

  const VerbsTable& table_;
  const Device& device_;
  const uint16_t peer_;
  const uint8_t stripe_;
  ibv_qp* queue_pair_ = nullptr;
  uint32_t inline_bytes_ = 0;  // what the device grants

  uint64_t appended_ = 0;
  uint64_t retired_ = 0;
  uint64_t last_put_ = 0;
  uint64_t done_put_ = 0;
  uint32_t unsignalled_ = 0;
  bool wants_completion_ = false;                        // some request of the chain
  int error_ = 0;                                        // of a chain that had to be rung early
  std::array<uint64_t, kSendDepth> puts_by_sequence_{};  // last_put_ when it was asked for

  uint32_t chained_ = 0;
  std::array<ibv_send_wr, kChainMax> chain_{};
  std::array<ibv_sge, kChainMax> pieces_{};
  std::array<SignalRecord, kChainMax> records_{};
  std::array<ibv_recv_wr, kReceiveBatch> receives_{};
};

// How to address the port of a peer.
ibv_ah_attr address_vector(const Device& device, const PortAddress& peer,
                           const VerbsConfig& config);

}  // namespace rdmacoll::verbs
