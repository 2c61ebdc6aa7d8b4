// Memory: bytes of a file that are being written. Few of them lie in ordinary memory; more in a
// block that servers read where it is, of a pool that keeps some for the next ones.
// Floor: files. Thread: Blocks any; Memory one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/files/tables.h"

namespace rdmacoll::files {

// Of kPartBytes each.
class Blocks {
 public:
  explicit Blocks(Tables& tables) : tables_(tables) {}
  // Has those that are free in common with others, and asks these tables for more.
  Blocks(Tables& tables, const Blocks& others) : tables_(tables), free_(others.free_) {}
  // Whatever was there before is in it.
  Result<std::shared_ptr<std::byte>> take();

 private:
  class Free {
   public:
    std::shared_ptr<std::byte> take();
    void give_back(std::shared_ptr<std::byte> block);

   private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<std::byte>> all_;
  };

  Tables& tables_;
  // A block may outlive the others: of a read that was waited for in vain.
  std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

class Memory {
 public:
  // To at most kPartBytes. What is new in it is to be written.
  Status resize(uint64_t bytes, Blocks& blocks);
  uint64_t bytes() const { return bytes_; }
  // How many bytes it may have without more memory.
  uint64_t room() const { return block_ ? kPartBytes : few_.size() * sizeof(float); }
  std::byte* data() { return block_ ? block_.get() : reinterpret_cast<std::byte*>(few_.data()); }
  // As floats; the last one ends with zeros.
  std::span<const float> floats();

 private:
  uint64_t bytes_ = 0;
  std::vector<float> few_;
  std::shared_ptr<std::byte> block_;
};

}  // namespace rdmacoll::files
