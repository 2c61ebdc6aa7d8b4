// Floor: benchmarks. Thread: a process's main one.
#include "benchmarks/transfer/rpc_ways.h"

#include <algorithm>
#include <cstring>

namespace rdmacoll::bench {

// As torch allocates on the CPU.
WeakRpc::Tensor WeakRpc::make_tensor(uint64_t bytes) {
  constexpr size_t kAlignment = 64;
  void* data = nullptr;
  if (posix_memalign(&data, kAlignment, bytes) != 0) give_up("there is no memory for a tensor");
  return Tensor(static_cast<std::byte*>(data));
}

void WeakRpc::prepare(uint64_t bytes) {
  channel_.make(sizeof(MessageHead) + bytes);
  if (channel_.sends()) buffer_ = channel_.side().memory(sizeof(MessageHead) + bytes);
  tensor_ = make_tensor(bytes);
  std::memset(tensor_.get(), 1, bytes);  // memory that was never written is faster to read
  bytes_ = bytes;
  number_ = 0;
}

void WeakRpc::send() {
  auto* message = buffer_->data();
  const MessageHead head{.bytes = bytes_};
  std::memcpy(message, &head, sizeof head);
  ++number_;
  if (marshal_ == Marshal::InItsBuffer) {
    std::memcpy(message + sizeof head, tensor_.get(), bytes_);
    channel_.side().wait(channel_.write(0, message, sizeof head + bytes_, number_));
  } else {
    const WorkPtr of_head = channel_.write(0, message, sizeof head, 0);
    channel_.side().wait(channel_.write(sizeof head, tensor_.get(), bytes_, number_));
    channel_.side().wait(of_head);
  }
  channel_.await(number_);
}

void WeakRpc::serve(int count) {
  for (int i = 0; i < count; ++i) {
    channel_.await(++number_);
    MessageHead head;
    std::memcpy(&head, channel_.data(), sizeof head);
    Tensor received = make_tensor(head.bytes);
    std::memcpy(received.get(), channel_.data() + sizeof head, head.bytes);
    tensor_ = std::move(received);
    use(channel_.side().place(), tensor_.get(), head.bytes);
    channel_.answer(number_);
  }
}

void StrongRpc::prepare(uint64_t bytes) {
  channel_.make(kSlots * kSlotBytes);
  tensor_.assign(bytes, std::byte{1});
  chunk_ = 0;
}

void StrongRpc::send() {
  const uint64_t bytes = tensor_.size();
  const MessageHead head{.bytes = bytes};
  works_.push_back(channel_.write(slot(chunk_), &head, sizeof head, 0));
  for (uint64_t at = 0; at < bytes; at += kChunkBytes) {
    if (chunk_ >= kSlots) channel_.await(chunk_ - kSlots + 1);
    works_.push_back(channel_.write(slot(chunk_) + sizeof head, tensor_.data() + at,
                                    std::min(kChunkBytes, bytes - at), chunk_ + 1));
    ++chunk_;
  }
  for (const WorkPtr& work : works_) channel_.side().wait(work);
  works_.clear();
  channel_.await(chunk_);
}

void StrongRpc::serve(int count) {
  for (int i = 0; i < count; ++i) {
    channel_.await(chunk_ + 1);
    MessageHead head;
    std::memcpy(&head, channel_.data() + slot(chunk_), sizeof head);
    for (uint64_t at = 0; at < head.bytes; at += kChunkBytes) {
      channel_.await(chunk_ + 1);
      std::memcpy(tensor_.data() + at, channel_.data() + slot(chunk_) + sizeof head,
                  std::min(kChunkBytes, head.bytes - at));
      ++chunk_;
      const bool is_last = at + kChunkBytes >= head.bytes;
      if (is_last) use(channel_.side().place(), tensor_.data(), head.bytes);
      channel_.answer(chunk_);
    }
  }
}

}  // namespace rdmacoll::bench
