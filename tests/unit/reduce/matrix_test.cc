// reduce() against the scalar reference: every dtype and op, by sources, destinations, sizes,
// alignment and aliasing; then every instruction set by itself.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>

#include "csrc/reduce/reduce.h"
#include "tests/unit/reduce/inputs.h"
#include "tests/unit/reduce/instruction_sets.h"

namespace rdmacoll::matrix_test {
namespace {

using reference::Bytes;
using reference::instruction_sets;
using reference::InstructionSet;
using Case = std::tuple<DType, ReduceOp>;

constexpr size_t kSizes[] = {0, 1, 3, 7, 63, 64, 65, 4097};
constexpr size_t kMaxSources = 5;
constexpr unsigned char kGuard = 0xa5;
constexpr size_t kGuardBytes = 64;

// A copy of some bytes, or room for them, `skew` bytes off any alignment, between guards.
class Buffer {
 public:
  Buffer(const Bytes& content, size_t skew)
      : bytes_(content.size()), skew_(skew), memory_(skew + bytes_ + 2 * kGuardBytes, kGuard) {
    std::copy(content.begin(), content.end(), data());
  }
  unsigned char* data() { return memory_.data() + kGuardBytes + skew_; }
  bool guards_are_whole() {
    static const Bytes guard(kGuardBytes, kGuard);
    return std::memcmp(data() - kGuardBytes, guard.data(), kGuardBytes) == 0 &&
           std::memcmp(data() + bytes_, guard.data(), kGuardBytes) == 0;
  }

 private:
  size_t bytes_, skew_;
  Bytes memory_;
};

// For each destination the source it is, or kMaxSources for memory of its own.
using Aliases = std::vector<size_t>;

std::vector<Aliases> all_aliases(size_t sources) {
  std::vector<size_t> places(1, kMaxSources);
  for (size_t s = 0; s < sources; ++s) places.push_back(s);
  std::vector<Aliases> all;
  for (const size_t first : places) {
    all.push_back({first});
    for (const size_t second : places)
      if (first != second || first == kMaxSources) all.push_back({first, second});
  }
  return all;
}

void expect_reduces(const Reduction& reduction, const std::vector<Bytes>& inputs, size_t skew,
                    const Aliases& aliases, const Bytes& want) {
  std::vector<Buffer> sources, own;
  for (const Bytes& input : inputs) sources.emplace_back(input, skew);
  for (size_t d = 0; d < aliases.size(); ++d) own.emplace_back(Bytes(want.size(), 0x5a), skew);
  std::vector<const void*> from;
  std::vector<void*> into;
  for (Buffer& source : sources) from.push_back(source.data());
  for (size_t d = 0; d < aliases.size(); ++d)
    into.push_back(aliases[d] == kMaxSources ? own[d].data() : sources[aliases[d]].data());

  reduce(reduction, from.data(), from.size(), into.data(), into.size(), want.size());

  const std::string where = "sources " + std::to_string(inputs.size()) + ", bytes " +
                            std::to_string(want.size()) + ", skew " + std::to_string(skew) +
                            ", destinations at " + ::testing::PrintToString(aliases);
  for (size_t d = 0; d < into.size(); ++d)
    ASSERT_EQ(reference::first_difference(reduction.dtype,
                                          static_cast<const unsigned char*>(into[d]), want),
              -1)
        << where << ", destination " << d;
  for (size_t s = 0; s < sources.size(); ++s) {
    ASSERT_TRUE(sources[s].guards_are_whole()) << where;
    const bool is_destination = std::count(aliases.begin(), aliases.end(), s) > 0;
    ASSERT_TRUE(is_destination || std::equal(inputs[s].begin(), inputs[s].end(), sources[s].data()))
        << where << ", source " << s;
  }
  for (Buffer& buffer : own) ASSERT_TRUE(buffer.guards_are_whole()) << where;
}

std::vector<Bytes> make_inputs(DType dtype, size_t sources, size_t elements, bool any_bits,
                               std::mt19937& random) {
  std::vector<Bytes> inputs;
  for (size_t s = 0; s < sources; ++s)
    inputs.push_back(any_bits ? reference::random_bits(dtype, elements, random)
                              : reference::small_integers(dtype, elements, random));
  return inputs;
}

class Matrix : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite();
};

TEST_P(Matrix, EqualsTheScalarReference) {
  const auto [dtype, op] = GetParam();
  if (!reduction_supported(dtype, op)) return;  // types_test.cc has which
  std::mt19937 random(1);
  for (const bool any_bits : {false, true})
    for (size_t k = 1; k <= kMaxSources; ++k)
      for (const size_t elements : kSizes) {
        const auto inputs = make_inputs(dtype, k, elements, any_bits, random);
        const Reduction reduction{dtype, op, static_cast<uint32_t>(k)};
        const Bytes want = reference::reference_fold(inputs, dtype, op, reduction.divisor);
        const std::vector<Aliases> apart = {{kMaxSources}};  // enough for one of the two inputs
        for (const Aliases& aliases : any_bits ? all_aliases(k) : apart)
          for (const size_t skew : {0, 1}) {
            expect_reduces(reduction, inputs, skew, aliases, want);
            if (HasFatalFailure()) return;
          }
      }
}

// Said once, and not a skip: a processor without a set never runs its folds.
void Matrix::SetUpTestSuite() {
  for (const InstructionSet& set : instruction_sets())
    if (!set.is_here) std::printf("%s folds: not tested, not on this processor\n", set.name);
}

// Each instruction set by itself, folding in place into the last source.
TEST_P(Matrix, EveryInstructionSetEqualsTheReference) {
  const auto [dtype, op] = GetParam();
  std::mt19937 random(2);
  for (const InstructionSet& set : instruction_sets()) {
    if (!set.is_here) continue;
    ASSERT_EQ(set.fold_of(dtype, op) != nullptr, reduction_supported(dtype, op)) << set.name;
    if (!reduction_supported(dtype, op)) continue;
    for (size_t k = 1; k <= 3; ++k)
      for (const size_t elements : kSizes) {
        auto inputs = make_inputs(dtype, k, elements, true, random);
        const Bytes want = reference::reference_fold(inputs, dtype, op, 3);
        std::vector<const void*> from;
        for (Bytes& input : inputs) from.push_back(input.data());
        set.fold_of(dtype, op)(from.data(), k, inputs.back().data(), 0, want.size(), 3);
        ASSERT_EQ(reference::first_difference(dtype, inputs.back().data(), want), -1)
            << set.name << ", " << k << " sources of " << elements << " elements";
      }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Matrix,
                         ::testing::Combine(::testing::ValuesIn(reference::kDTypes),
                                            ::testing::ValuesIn(reference::kOps)),
                         [](const auto& info) {
                           return std::string(dtype_name(std::get<0>(info.param))) + "_" +
                                  reduce_op_name(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace rdmacoll::matrix_test
