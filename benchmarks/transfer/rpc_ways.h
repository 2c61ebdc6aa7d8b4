// Two RPCs over csrc/remote, the transport that is compared: what a good RPC does with one-sided
// writes, where sender and receiver do not know each other's tensors.
// Floor: benchmarks. Thread: a process's main one.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "benchmarks/transfer/remote_way.h"

namespace rdmacoll::bench {

struct MessageHead {
  uint64_t bytes = 0;
  std::byte rest[56]{};  // of a line: a method, an id
};

// Where the sender's data become a message.
enum class Marshal : uint8_t {
  InItsBuffer,  // a registered one of the sender's, which is then written: what RPCs over RDMA do
  InTheInbox,   // the write is the marshalling, as memory that is mapped allows
};

// The whole message, then a new tensor at the receiver, then the reply.
class WeakRpc final : public Way {
 public:
  WeakRpc(const Place& place, Marshal marshal) : channel_(place), marshal_(marshal) {}

  void prepare(uint64_t bytes) override;
  void send() override;
  void serve(int count) override;
  std::byte* tensor() override { return tensor_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  using Tensor = std::unique_ptr<std::byte, Free>;
  static Tensor make_tensor(uint64_t bytes);

  Channel channel_;
  const Marshal marshal_;
  RemoteMemoryPtr buffer_;  // the sender's
  Tensor tensor_;
  uint64_t bytes_ = 0;
  uint64_t number_ = 0;
};

// In chunks through a ring: the receiver copies one into its tensor while the next one travels.
class StrongRpc final : public Way {
 public:
  explicit StrongRpc(const Place& place) : channel_(place) {}

  void prepare(uint64_t bytes) override;
  void send() override;
  void serve(int count) override;
  std::byte* tensor() override { return tensor_.data(); }

 private:
  static constexpr uint64_t kChunkBytes = 256u << 10;
  static constexpr uint64_t kSlots = 8;
  static constexpr uint64_t kSlotBytes = sizeof(MessageHead) + kChunkBytes;
  static uint64_t slot(uint64_t chunk) { return chunk % kSlots * kSlotBytes; }

  Channel channel_;
  std::vector<std::byte> tensor_;
  std::vector<WorkPtr> works_;
  uint64_t chunk_ = 0;  // of all transfers
};

}  // namespace rdmacoll::bench
