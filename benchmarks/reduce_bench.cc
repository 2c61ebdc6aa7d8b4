// Speed of reduce() with two sources, beside memcpy() on the same memory: how far from the memory's
// own speed each dtype is. Usage: reduce_bench [MiB of one buffer, default 64] [op, default Sum].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "csrc/reduce/reduce.h"

namespace {

using namespace rdmacoll;

constexpr int kRounds = 9;
constexpr double kBytesPerTurn = 256 << 20;  // enough to be long beside the clock's step
constexpr size_t kTileBytes = 256 * 1024;    // as large as the pieces that the engine folds

const std::vector<ReduceOp> kOps = {
#define X(name) ReduceOp::name,
    RDMACOLL_REDUCE_OPS(X)
#undef X
};

double seconds_of(const std::function<void()>& call, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

// The buffers, and what is measured on them. Normal numbers in every dtype.
struct Memory {
  explicit Memory(size_t size) : bytes(size), left(size, 0x3c), right(size, 0x3d), result(size) {}

  void copy() {
    std::memcpy(result.data(), left.data(), bytes);
    asm volatile("" ::"r"(result.data()) : "memory");  // or the copies would be one
  }
  void apart(const Reduction& reduction) {
    const void* const sources[] = {left.data(), right.data()};
    void* const destinations[] = {result.data()};
    reduce(reduction, sources, 2, destinations, 1, bytes);
  }
  void in_place(const Reduction& reduction) {
    const void* const sources[] = {result.data(), right.data()};
    void* const destinations[] = {result.data()};
    reduce(reduction, sources, 2, destinations, 1, bytes);
  }
  // As an all_reduce does: from tensor and stage into tensor and stage, tile by tile.
  void staged(const Reduction& reduction) {
    for (size_t at = 0; at < bytes; at += kTileBytes) {
      const void* const sources[] = {&result[at], theirs.data()};
      void* const destinations[] = {&result[at], mine.data()};
      reduce(reduction, sources, 2, destinations, 2, std::min(kTileBytes, bytes - at));
    }
  }

  size_t bytes;
  std::vector<char> left, right, result;
  std::vector<char> theirs = std::vector<char>(kTileBytes, 0x3d), mine = theirs;
};

void measure(DType dtype, ReduceOp op, Memory& memory) {
  const Reduction reduction{dtype, op, 2};
  const double bytes = static_cast<double>(memory.bytes);
  const int calls = std::max(1, static_cast<int>(kBytesPerTurn / bytes));
  std::vector<double> copy, rate[3], share[3];
  for (int round = 0; round < kRounds; ++round) {  // in turns, so that all meet the same noise
    copy.push_back(2e-9 * bytes / seconds_of([&] { memory.copy(); }, calls));
    const double rates[] = {
        3e-9 * bytes / seconds_of([&] { memory.apart(reduction); }, calls),
        3e-9 * bytes / seconds_of([&] { memory.in_place(reduction); }, calls),
        4e-9 * bytes / seconds_of([&] { memory.staged(reduction); }, calls),
    };
    for (int i = 0; i < 3; ++i) {
      rate[i].push_back(rates[i]);
      share[i].push_back(100 * rates[i] / copy.back());
    }
  }
  std::printf("%-12s%8.1f", dtype_name(dtype), median(copy));
  for (int i = 0; i < 3; ++i) std::printf("%9.1f %4.0f%%", median(rate[i]), median(share[i]));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const double mib = argc > 1 ? std::atof(argv[1]) : 64;
  const size_t bytes = static_cast<size_t>(mib * (1 << 20)) / 64 * 64;
  if (bytes == 0 || mib > 4096) {
    std::fprintf(stderr, "reduce_bench: '%s' is not a size in MiB up to 4096\n", argv[1]);
    return 2;
  }
  const std::string name = argc > 2 ? argv[2] : "Sum";
  const auto op = std::find_if(kOps.begin(), kOps.end(),
                               [&](ReduceOp each) { return name == reduce_op_name(each); });
  if (op == kOps.end()) {
    std::fprintf(stderr, "reduce_bench: no op is named '%s'\n", name.c_str());
    return 2;
  }
  Memory memory(bytes);
  std::printf("%s, %.2f MiB a buffer; GB/s read and written, and that as a share of memcpy's\n",
              name.c_str(), mib);
  std::printf("%-12s%8s%15s%15s%15s\n", "", "memcpy", "apart", "in place", "staged");
#define X(name, size) DType::name,
  for (const DType dtype : {RDMACOLL_DTYPES(X)})
#undef X
    if (reduction_supported(dtype, *op)) measure(dtype, *op, memory);
}
