// csrc/remote: a write with a notification, which the receiver answers with one of its own; and
// what RPCs over the same transport are made of. Floor: benchmarks. Thread: a process's main one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/transfer/way.h"
#include "csrc/engine/endpoint.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::bench {

// A process of two that can read and write each other's memory.
class RemoteSide {
 public:
  explicit RemoteSide(const Place& place);

  const Place& place() const { return place_; }
  // Zeroed, for the other to write.
  RemoteMemoryPtr memory(uint64_t bytes);
  void expose(const std::string& name, const RemoteMemoryPtr& memory);
  void revoke(const std::string& name);
  OpenedPtr open(const std::string& name);
  void wait(const WorkPtr& work) { need(remote_->wait(*work, kTimeoutMs, {})); }
  WorkPtr write(const OpenedPtr& there, uint64_t offset, const void* data, uint64_t bytes,
                uint64_t notify) {
    return remote_->write(there, offset, data, bytes, notify, kTimeoutMs);
  }
  WorkPtr read(const OpenedPtr& there, uint64_t offset, void* data, uint64_t bytes) {
    return remote_->read(there, offset, data, bytes, kTimeoutMs);
  }
  void wait_notified(const std::string& name, uint64_t number) {
    wait(needed(remote_->wait_notified(name, number, kTimeoutMs)));
  }

 private:
  static constexpr int64_t kTimeoutMs = 60'000;

  const Place place_;
  std::shared_ptr<Endpoint> endpoint_;
  std::shared_ptr<Communicator> communicator_;
  std::unique_ptr<Remote> remote_;
};

// What the receiver exposes for data, and the sender for answers.
class Channel {
 public:
  explicit Channel(const Place& place) : side_(place) {}

  RemoteSide& side() { return side_; }
  bool sends() const { return side_.place().sends; }
  // Both call it. What was there before is gone.
  void make(uint64_t bytes);
  // The receiver's.
  std::byte* data() const { return memory_->data(); }

  // The sender's. Ends when the data may be changed.
  WorkPtr write(uint64_t offset, const void* data, uint64_t bytes, uint64_t notify) {
    return side_.write(there_, offset, data, bytes, notify);
  }
  // What the other has notified of: data, or an answer.
  void await(uint64_t number) { side_.wait_notified(mine_, number); }
  // The receiver's.
  void answer(uint64_t number) { side_.wait(side_.write(there_, 0, nullptr, 0, number)); }

 private:
  RemoteSide side_;
  RemoteMemoryPtr memory_;
  OpenedPtr there_;
  std::string mine_;
  int made_ = 0;
};

class RemoteWay final : public Way {
 public:
  explicit RemoteWay(const Place& place) : channel_(place) {}

  void prepare(uint64_t bytes) override;
  void send() override;
  void serve(int count) override;
  std::byte* tensor() override { return channel_.sends() ? source_->data() : channel_.data(); }

 private:
  Channel channel_;
  RemoteMemoryPtr source_;
  uint64_t bytes_ = 0;
  uint64_t number_ = 0;
};

}  // namespace rdmacoll::bench
