// Many ranges of remote memory, read and written as one transfer between processes, which are
// threads here; and which ranges rows are that go by their indices.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "csrc/remote/remote.h"
#include "csrc/remote/row_ranges.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll::ranges_test {
namespace {

using Rows = std::vector<int64_t>;

std::vector<std::vector<uint64_t>> numbers_of(const std::vector<MovedRange>& ranges) {
  std::vector<std::vector<uint64_t>> numbers;
  for (const MovedRange& range : ranges) {
    numbers.push_back({range.theirs, range.mine, range.bytes});
  }
  return numbers;
}

TEST(RowRanges, NeighboursThatComeOneAfterTheOtherAreOne) {
  using Ranges = std::vector<std::vector<uint64_t>>;
  const RowLayout layout{.offset = 100, .row_bytes = 10};
  for (const auto make : {ranges_to_read, ranges_to_write}) {
    EXPECT_EQ(numbers_of(make(layout, Rows{})), Ranges{});
    EXPECT_EQ(numbers_of(make({.offset = 100, .row_bytes = 0}, Rows{3, 4})), Ranges{});
    EXPECT_EQ(numbers_of(make(layout, Rows{3, 4, 5})), (Ranges{{130, 0, 30}}));
    EXPECT_EQ(
        numbers_of(make(layout, Rows{7, 8, 2, 1, 0, 1'000'000})),
        (Ranges{{170, 0, 20}, {120, 20, 10}, {110, 30, 10}, {100, 40, 10}, {10'000'100, 50, 10}}));
  }
}

TEST(RowRanges, OfEqualRowsAllAreReadAndTheLastIsWritten) {
  using Ranges = std::vector<std::vector<uint64_t>>;
  const RowLayout layout{.offset = 0, .row_bytes = 8};
  const Rows rows{4, 4, 9, 5, 4, 9, 6};
  EXPECT_EQ(numbers_of(ranges_to_read(layout, rows)), (Ranges{{32, 0, 8},
                                                              {32, 8, 8},
                                                              {72, 16, 8},
                                                              {40, 24, 8},
                                                              {32, 32, 8},
                                                              {72, 40, 8},
                                                              {48, 48, 8}}));
  EXPECT_EQ(numbers_of(ranges_to_write(layout, rows)),
            (Ranges{{40, 24, 8}, {32, 32, 8}, {72, 40, 8}, {48, 48, 8}}));
  EXPECT_EQ(numbers_of(ranges_to_write(layout, Rows{1, 7, 2, 7})),
            (Ranges{{8, 0, 8}, {16, 16, 8}, {56, 24, 8}}))
      << "1 and 2 are neighbours there, and here the first 7 lies between them";
}

// Of a table of rows, some, in any order, and one of them twice.
TEST_P(RemoteTest, ReadsRangesSideBySide) {
  constexpr uint64_t kRows = 600;
  constexpr uint64_t kWords = 9;
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = p.memory(8 * kRows * kWords, Others::OnlyRead);
      auto* const words = reinterpret_cast<uint64_t*>(memory->data());
      for (uint64_t i = 0; i < kRows * kWords; ++i) words[i] = i;
      p.expose({.name = "table", .bytes = 8 * kRows * kWords}, memory, 0);
      p.meet();
      return;
    }
    const auto opened = p.open("table", 0);
    std::vector<uint64_t> got(kRows * kWords, 0);
    std::vector<MovedRange> ranges;
    for (uint64_t i = 0; i < kRows; ++i) {
      ranges.push_back({i * 7 % (kRows - 1) * 8 * kWords, i * 8 * kWords, 8 * kWords});
    }
    p.good(p.remote().read(opened, got.data(), 8 * got.size(), ranges, kSoonMs));
    for (uint64_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], i / kWords * 7 % (kRows - 1) * kWords + i % kWords) << i;
    }
    p.good(p.remote().read(opened, got.data(), 8 * got.size(), {}, kSoonMs));
    const auto bad = [&](MovedRange range) {
      return p.wait(p.remote().read(opened, got.data(), 8 * got.size(), {range}, kSoonMs)).code();
    };
    EXPECT_EQ(bad({8 * (kRows * kWords - 1), 0, 16}), StatusCode::InvalidArgument);
    EXPECT_EQ(bad({0, 8 * (kRows * kWords - 1), 16}), StatusCode::InvalidArgument);
    EXPECT_EQ(bad({0, 0, 0}), StatusCode::InvalidArgument);
    p.meet();
  });
}

// Every second row of a table, in any order, and the number behind all of them.
TEST_P(RemoteTest, WritesRangesSideBySide) {
  constexpr uint64_t kRows = 201;
  constexpr uint64_t kWords = 9;
  constexpr uint64_t kWritten = kRows / 2;
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = p.memory(8 * kRows * kWords, Others::Write);
      auto* const words = reinterpret_cast<uint64_t*>(memory->data());
      p.expose({.name = "table", .bytes = 8 * kRows * kWords, .is_writable = true}, memory, 0);
      p.good(p.remote().wait_notified("table", 1, kSoonMs).take());
      for (uint64_t i = 0; i < kRows * kWords; ++i) {
        const uint64_t row = i / kWords;
        ASSERT_EQ(words[i], row % 2 == 0 ? 0 : row * kWords + i % kWords) << i;
      }
      p.good(p.remote().wait_notified("table", 2, kSoonMs).take());
      p.meet();
      EXPECT_EQ(p.remote().notified("table").value(), 2u);
      return;
    }
    const auto opened = p.open("table", 0);
    std::vector<uint64_t> data(kWritten * kWords);
    std::vector<MovedRange> ranges;
    for (uint64_t i = 0; i < kWritten; ++i) {
      const uint64_t row = i * 7 % kWritten * 2 + 1;
      std::iota(data.begin() + i * kWords, data.begin() + (i + 1) * kWords, row * kWords);
      ranges.push_back({row * 8 * kWords, i * 8 * kWords, 8 * kWords});
    }
    const uint64_t bytes = 8 * data.size();
    const auto write = [&](std::vector<MovedRange> of_it, uint64_t notify) {
      return p.wait(
          p.remote().write(opened, data.data(), bytes, std::move(of_it), notify, kSoonMs));
    };
    EXPECT_TRUE(write(ranges, 1).ok());
    EXPECT_TRUE(write({}, 2).ok());
    const auto bad = [&](MovedRange range) { return write({range}, 3).code(); };
    EXPECT_EQ(bad({8 * (kRows * kWords - 1), 0, 16}), StatusCode::InvalidArgument);
    EXPECT_EQ(bad({0, bytes - 8, 16}), StatusCode::InvalidArgument);
    EXPECT_EQ(bad({0, 0, 0}), StatusCode::InvalidArgument);
    EXPECT_EQ(write(ranges, 2).code(), StatusCode::InvalidArgument) << "2 was notified of before";
    p.meet();
  });
}

}  // namespace
}  // namespace rdmacoll::ranges_test
