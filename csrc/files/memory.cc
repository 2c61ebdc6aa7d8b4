// Memory. Floor: files. Thread: see memory.h.
#include "csrc/files/memory.h"

#include <cstring>
#include <utility>

namespace rdmacoll::files {
namespace {

constexpr uint64_t kFewBytes = 64 * 1024;  // servers are sent those
constexpr size_t kKept = 8;                // blocks that are free

}  // namespace

std::shared_ptr<std::byte> Blocks::Free::take() {
  const std::lock_guard lock(mutex_);
  if (all_.empty()) return nullptr;
  auto block = std::move(all_.back());
  all_.pop_back();
  return block;
}

void Blocks::Free::give_back(std::shared_ptr<std::byte> block) {
  const std::lock_guard lock(mutex_);
  if (all_.size() < kKept) all_.push_back(std::move(block));
}

Result<std::shared_ptr<std::byte>> Blocks::take() {
  auto block = free_->take();
  if (block == nullptr) {
    auto lent = tables_.lend(kPartBytes);
    if (!lent.ok()) return lent.status();
    block = lent.take();
  }
  std::byte* const data = block.get();
  return std::shared_ptr<std::byte>(data,
                                    [free = free_, block = std::move(block)](std::byte*) mutable {
                                      free->give_back(std::move(block));
                                    });
}

Status Memory::resize(uint64_t bytes, Blocks& blocks) {
  RDMACOLL_CHECK(bytes <= kPartBytes);
  if (bytes > kFewBytes && block_ == nullptr) {
    auto block = blocks.take();
    if (!block.ok()) return block.status();
    if (bytes_ > 0) std::memcpy(block.value().get(), few_.data(), bytes_);
    block_ = block.take();
    few_ = {};
  }
  if (block_ == nullptr) few_.resize(elements_of(bytes));
  bytes_ = bytes;
  return Status();
}

std::span<const float> Memory::floats() {
  const uint64_t floats = elements_of(bytes_);
  std::memset(data() + bytes_, 0, floats * sizeof(float) - bytes_);
  return {reinterpret_cast<const float*>(data()), floats};
}

}  // namespace rdmacoll::files
