// Speed of reduce() with two sources, beside memcpy() on the same memory: how far from the memory's
// own speed each dtype is. Usage: reduce_bench [MiB of one buffer, default 64].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "csrc/reduce/reduce.h"

namespace {

using rdmacoll::DType;

constexpr int kRounds = 7;
constexpr double kBytesPerRound = 512 << 20;  // enough to be long beside the clock's step

template <typename F>
double seconds_of(F&& call, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const double mib = argc > 1 ? std::atof(argv[1]) : 64;
  const size_t bytes = static_cast<size_t>(mib * (1 << 20)) / 64 * 64;
  if (bytes == 0 || mib > 4096) {
    std::fprintf(stderr, "reduce_bench: '%s' is not a size in MiB up to 4096\n", argv[1]);
    return 2;
  }
  const std::vector<char> left(bytes, 0x3c), right(bytes, 0x3d);  // normal numbers in every dtype
  std::vector<char> result(bytes, 1);
  const void* const sources[] = {left.data(), right.data()};
  void* const destination = result.data();
  const int calls = std::max(1, static_cast<int>(kBytesPerRound / static_cast<double>(bytes)));

  // GB/s moved: memcpy reads one buffer and writes one, a sum reads two and writes one.
  std::printf("%.2f MiB per buffer; GB/s read and written, median of %d rounds\n", mib, kRounds);
  std::printf("%-12s%10s%10s%10s\n", "dtype", "Sum k=2", "memcpy", "share");
#define X(name, size) DType::name,
  for (const DType dtype : {RDMACOLL_DTYPES(X)}) {
#undef X
    std::vector<double> sum_gbs, copy_gbs;
    for (int round = 0; round < kRounds; ++round) {  // in turns, so that both meet the same noise
      const double copy_s = seconds_of(
          [&] {
            std::memcpy(destination, sources[round % 2], bytes);
            asm volatile("" ::"r"(destination) : "memory");  // or the copies would be one
          },
          calls);
      const double sum_s = seconds_of(
          [&] {
            rdmacoll::reduce({dtype, rdmacoll::ReduceOp::Sum}, sources, 2, &destination, 1, bytes);
          },
          calls);
      copy_gbs.push_back(2e-9 * static_cast<double>(bytes) / copy_s);
      sum_gbs.push_back(3e-9 * static_cast<double>(bytes) / sum_s);
    }
    std::printf("%-12s%10.1f%10.1f%9.0f%%\n", rdmacoll::dtype_name(dtype), median(sum_gbs),
                median(copy_gbs), 100 * median(sum_gbs) / median(copy_gbs));
  }
}
