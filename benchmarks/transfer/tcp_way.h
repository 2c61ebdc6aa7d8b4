// What the kernel's TCP does with blocking calls on one socket, from the sender's tensor into the
// receiver's: the least that any way over a network takes. Floor: benchmarks. Thread: a process's
// main one.
#pragma once

#include <vector>

#include "benchmarks/transfer/way.h"

namespace rdmacoll::bench {

class TcpWay final : public Way {
 public:
  explicit TcpWay(const Place& place);
  ~TcpWay() override;

  void prepare(uint64_t bytes) override { tensor_.assign(bytes, std::byte{1}); }
  void send() override;
  void serve(int count) override;
  std::byte* tensor() override { return tensor_.data(); }

 private:
  void write(const std::byte* data, uint64_t bytes) const;
  void read(std::byte* data, uint64_t bytes) const;

  const Place place_;
  int connection_ = -1;
  std::vector<std::byte> tensor_;
  std::byte answer_{};
};

}  // namespace rdmacoll::bench
