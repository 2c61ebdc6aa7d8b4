// Buffers. Floor: tests.
#include "tests/faults/buffers.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/check.h"

namespace rdmacoll::faults {
namespace {

// Several tiles in every algorithm, and a time within which a fault can come.
constexpr uint64_t kBytes = 4u << 20;
constexpr std::byte kMine{0x5A};
constexpr int kRoot = 0;

}  // namespace

Buffers::Buffers(Communicator& c) {
  if (c.rank() % 2 == 0 && c.heap() != nullptr) {
    in_ = c.heap()->allocate(2 * kBytes);
    RDMACOLL_CHECK(in_ != nullptr);
  } else {
    ordinary_.resize(2 * kBytes);
    in_ = ordinary_.data();
  }
  out_ = in_ + kBytes;
  std::memset(in_, 0, 2 * kBytes);
}

std::vector<ConstBuffer> Buffers::inputs(int size) const {
  const uint64_t bytes = kBytes / static_cast<uint64_t>(size) / 64 * 64;
  std::vector<ConstBuffer> blocks;
  for (int r = 0; r < size; ++r) blocks.push_back({in_ + static_cast<uint64_t>(r) * bytes, bytes});
  return blocks;
}

std::vector<MutableBuffer> Buffers::outputs(int size) {
  const uint64_t bytes = kBytes / static_cast<uint64_t>(size) / 64 * 64;
  std::vector<MutableBuffer> blocks;
  for (int r = 0; r < size; ++r) blocks.push_back({out_ + static_cast<uint64_t>(r) * bytes, bytes});
  return blocks;
}

Result<WorkPtr> Buffers::start(Collective collective, Communicator& c) {
  const auto ins = inputs(c.size());
  const auto outs = outputs(c.size());
  const auto me = static_cast<size_t>(c.rank());
  constexpr uint64_t kCount = kBytes / sizeof(float);
  const bool is_root = c.rank() == kRoot;
  switch (collective) {
    case Collective::AllReduce:
      return c.all_reduce(in_, out_, kCount, DType::Float32, ReduceOp::Sum);
    case Collective::Broadcast:
      return c.broadcast(out_, kBytes, kRoot);
    case Collective::Reduce:
      return c.reduce(in_, out_, kCount, DType::Float32, ReduceOp::Sum, kRoot);
    case Collective::AllGather:
      return c.all_gather(ins[me], outs);
    case Collective::ReduceScatter:
      return c.reduce_scatter(ins, outs[me], DType::Float32, ReduceOp::Sum);
    case Collective::AllToAll:
      return c.all_to_all(ins, outs);
    case Collective::Gather:
      return c.gather(ins[me], is_root ? outs : std::vector<MutableBuffer>(), kRoot);
    case Collective::Scatter:
      return c.scatter(is_root ? ins : std::vector<ConstBuffer>(), outs[me], kRoot);
    case Collective::Barrier:
      return c.barrier();
  }
  return Status(StatusCode::InvalidArgument, "no such collective");
}

void Buffers::overwrite() { std::fill_n(in_, 2 * kBytes, kMine); }

bool Buffers::is_overwritten() const {
  return std::all_of(in_, in_ + 2 * kBytes, [](std::byte b) { return b == kMine; });
}

}  // namespace rdmacoll::faults
