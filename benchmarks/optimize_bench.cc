// Speed of optimize() on one thread, beside memcpy() and a fold on the same memory: GB of
// parameters that each optimizer steps in a second. Usage: optimize_bench [MiB of parameters,
// default 64].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "csrc/reduce/optimize.h"
#include "csrc/reduce/reduce.h"

namespace {

using namespace rdmacoll;

constexpr int kRounds = 15;
constexpr double kBytesPerTurn = 256 << 20;  // enough to be long beside the clock's step
constexpr uint64_t kRow = 64;                // elements, of RowwiseAdagrad

// The buffers. Normal numbers, which stay so over all steps of a run.
struct Memory {
  explicit Memory(uint64_t elements)
      : count(elements / kRow * kRow),
        value(count, 1.0f),
        next(count),
        gradient(count, 0.5f),
        other(count, 0.25f),
        first(count, 0.5f),
        second(count, 0.25f) {}

  uint64_t count;
  std::vector<float> value, next, gradient, other, first, second;
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

struct Way {
  std::string name;
  std::function<void()> call;
  std::vector<double> rate = {}, share = {};  // of each round; the share of memcpy's
};

void copy(Memory& memory) {
  std::memcpy(memory.next.data(), memory.value.data(), memory.count * sizeof(float));
  asm volatile("" ::"r"(memory.next.data()) : "memory");  // or the copies would be one
}

void fold(Memory& memory) {
  const void* const sources[] = {memory.value.data(), memory.gradient.data()};
  void* const destinations[] = {memory.next.data()};
  reduce({DType::Float32, ReduceOp::Sum}, sources, 2, destinations, 1,
         memory.count * sizeof(float));
}

void step(Memory& memory, const OptimizerStep& step, size_t sources, float* next, Stores stores) {
  const void* const from[] = {memory.gradient.data(), memory.other.data()};
  float* const state[] = {memory.first.data(), memory.second.data()};
  const uint32_t divisor = static_cast<uint32_t>(sources);
  optimize(step, {from, sources, divisor}, memory.value.data(), next, state, memory.count, stores);
}

void step_rows(Memory& memory, const OptimizerStep& step) {
  for (uint64_t at = 0; at < memory.count; at += kRow) {
    const void* const from[] = {&memory.gradient[at]};
    optimize_row(step, {from, 1}, &memory.value[at], &memory.value[at], &memory.first[at / kRow],
                 kRow);
  }
}

void add_ways(Memory& memory, const Optimizer& optimizer, const std::string& name,
              std::vector<Way>& ways) {
  const OptimizerStep at_ten = step_of(optimizer, 10);
  if (optimizer.kind == OptimizerKind::RowwiseAdagrad) {
    ways.push_back({name + ", rows of 64", [=, &memory] { step_rows(memory, at_ten); }});
    return;
  }
  float* const in_place = memory.value.data();
  float* const apart = memory.next.data();
  const auto add = [&](const std::string& how, size_t sources, float* next, Stores stores) {
    ways.push_back({name + how, [=, &memory] { step(memory, at_ten, sources, next, stores); }});
  };
  add(" in place", 1, in_place, Stores::Cached);
  add(" apart", 1, apart, Stores::Cached);
  add(" apart, streamed", 1, apart, Stores::Streamed);
  add(" of two, streamed", 2, apart, Stores::Streamed);
}

}  // namespace

int main(int argc, char** argv) {
  const double mib = argc > 1 ? std::atof(argv[1]) : 64;
  const auto elements = static_cast<uint64_t>(mib * (1 << 20) / sizeof(float));
  if (elements < kRow || mib > 4096) {
    std::fprintf(stderr, "optimize_bench: '%s' is not a size in MiB up to 4096\n", argv[1]);
    return 2;
  }
  Memory memory(elements);
  std::vector<Way> ways = {{"memcpy", [&] { copy(memory); }},
                           {"Sum of two apart", [&] { fold(memory); }}};
  using enum OptimizerKind;
  add_ways(memory, {.kind = Sgd, .lr = 1e-9}, "Sgd", ways);
  add_ways(memory, {.kind = Sgd, .lr = 1e-9, .momentum = 0.9}, "Sgd with momentum", ways);
  add_ways(memory, {.kind = Adagrad, .lr = 1e-9, .eps = 1e-10}, "Adagrad", ways);
  add_ways(memory, {.kind = RowwiseAdagrad, .lr = 1e-9, .eps = 1e-10}, "RowwiseAdagrad", ways);
  const Optimizer adam = {.kind = Adam, .lr = 1e-9, .eps = 1e-8, .beta1 = 0.9, .beta2 = 0.999};
  add_ways(memory, adam, "Adam", ways);
  Optimizer adam_w = adam;
  adam_w.kind = AdamW;
  adam_w.weight_decay = 0.01;
  add_ways(memory, adam_w, "AdamW", ways);

  const double bytes = static_cast<double>(memory.count) * sizeof(float);
  const int calls = std::max(1, static_cast<int>(kBytesPerTurn / bytes));
  for (int round = 0; round < kRounds; ++round)  // in turns, so that all meet the same noise
    for (Way& way : ways) {
      way.rate.push_back(1e-9 * bytes / seconds_of(way.call, calls));
      way.share.push_back(way.rate.back() / ways[0].rate.back());
    }
  std::printf("%.2f MiB of parameters, one thread; medians of %d rounds\n", mib, kRounds);
  std::printf("%-36s%8s%14s\n", "", "GB/s", "of memcpy's");
  for (const Way& way : ways)
    std::printf("%-36s%8.2f%14.2f\n", way.name.c_str(), median(way.rate), median(way.share));
}
