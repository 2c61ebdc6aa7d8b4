// Tuning: what a table may look like, and what is said of one that is wrong.
#include "csrc/plan/selection/tuning.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rdmacoll {
namespace {

const auto kMapped = &Islands::together;
const auto kUnmapped = &Islands::apart;

using Rows = std::vector<std::pair<uint64_t, Algorithm>>;

Rows rows_of(std::string_view text, Collective collective, const Islands& islands) {
  auto tuning = Tuning::parse(text);
  EXPECT_TRUE(tuning.ok()) << tuning.status().message();
  Rows rows;
  if (!tuning.ok()) return rows;
  for (const TunedRow& row : tuning.value().rows(collective, islands)) {
    rows.emplace_back(row.up_to_bytes, row.algorithm);
  }
  return rows;
}

TEST(TuningTest, RowsCommentsAndBlanks) {
  const std::string text =
      "# measured yesterday\n"
      "\n"
      "all_reduce mapped world=2 up_to=16K one_shot  # 3 us\r\n"
      "  broadcast\tunmapped   world=4096 up_to=any tree\n"
      "all_reduce mapped world=2 up_to=3M ring\n"
      "all_reduce mapped world=2 up_to=2G tree\n"
      "all_reduce mapped world=2 up_to=any two_shot";
  EXPECT_EQ(rows_of(text, Collective::AllReduce, kMapped(2)),
            (Rows{{16 << 10, Algorithm::OneShot},
                  {3 << 20, Algorithm::Ring},
                  {uint64_t{2} << 30, Algorithm::Tree},
                  {kAnyBytes, Algorithm::TwoShot}}));
  EXPECT_EQ(rows_of(text, Collective::Broadcast, kUnmapped(4096)),
            (Rows{{kAnyBytes, Algorithm::Tree}}));
  EXPECT_EQ(rows_of(text, Collective::AllReduce, kUnmapped(2)), Rows());
  EXPECT_EQ(rows_of(text, Collective::AllReduce, kMapped(3)), Rows());
}

TEST(TuningTest, NothingIsATable) {
  EXPECT_EQ(rows_of("", Collective::AllReduce, kMapped(2)), Rows());
  EXPECT_EQ(rows_of("# nothing\n\n", Collective::AllReduce, kMapped(2)), Rows());
}

void expect_refused(const std::string& text, const std::string& says) {
  const auto tuning = Tuning::parse(text);
  ASSERT_FALSE(tuning.ok()) << text;
  EXPECT_EQ(tuning.status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(tuning.status().message(), says);
}

TEST(TuningTest, WrongWordsAreNamedWithWhatIsAllowed) {
  const std::string row =
      ": there are 4 words; a row is: collective mapped|unmapped|hosts=HxL world=N "
      "up_to=BYTES|any algorithm";
  expect_refused("# one\nall_reduce mapped world=2 ring", "line 2" + row);
  for (const std::string word : {"all_reduse", "barrier"}) {
    expect_refused(word + " mapped world=2 up_to=any ring",
                   "line 1: '" + word +
                       "' is no collective that can be tuned; there are all_reduce, broadcast, "
                       "reduce, all_gather, reduce_scatter");
  }
  expect_refused(
      "all_reduce near world=2 up_to=any ring",
      "line 1: 'near' is no layout; give mapped (all peers share memory), unmapped (none do) "
      "or hosts=2x4 (2 hosts of 4 ranks)");
  for (const std::string word : {"world=1", "world=4097", "world=2x", "world=", "ranks=2"}) {
    expect_refused("all_reduce mapped " + word + " up_to=any ring",
                   "line 1: '" + word + "' is not valid; give world=2 to world=4096");
  }
  for (const std::string word : {"up_to=", "up_to=-1", "up_to=1T", "up_to=K", "up_to=1.5K", "16K",
                                 "up_to=18446744073709551615", "up_to=99999999999G"}) {
    expect_refused("all_reduce mapped world=2 " + word + " ring",
                   "line 1: '" + word +
                       "' is not valid; give bytes, as in up_to=16384 or up_to=16K, or up_to=any");
  }
}

TEST(TuningTest, AnAlgorithmMustExistForTheGroup) {
  for (const std::string word : {"rings", "two_shot", "dissemination"}) {
    expect_refused("all_reduce unmapped world=300 up_to=any " + word,
                   "line 1: '" + word +
                       "' is no algorithm of all_reduce unmapped world=300; there are one_shot, "
                       "direct, ring, tree");
  }
}

TEST(TuningTest, RowsAscendToAny) {
  const std::string first = "reduce mapped world=2 up_to=16K tree\n";
  const std::string order = "; order the rows of reduce mapped world=2 by size, each size once";
  expect_refused(first + "reduce mapped world=2 up_to=4096 one_shot",
                 "line 2: up_to=4096 is not above up_to=16384 of line 1" + order);
  expect_refused(first + "#\n" + first,
                 "line 3: up_to=16384 is not above up_to=16384 of line 1" + order);
  expect_refused("reduce mapped world=2 up_to=any tree\n" + first,
                 "line 2: up_to=16384 is not above up_to=any of line 1" + order);
  expect_refused(first + "reduce mapped world=4 up_to=any one_shot",
                 "line 1: the rows of reduce mapped world=2 end at up_to=16384; the last must say "
                 "up_to=any");
}

TEST(TuningTest, AFileThatIsNoTextIsShownAsText) {
  const std::string bytes = std::string("\x7f") + "ELF\x01\xff" + std::string(60, 'x');
  const auto tuning = Tuning::parse(bytes + " b c d e");
  ASSERT_FALSE(tuning.ok());
  EXPECT_TRUE(tuning.status().message().starts_with("line 1: '?ELF??xxxx"))
      << tuning.status().message();
  EXPECT_EQ(tuning.status().message().find(std::string(40, 'x')), std::string::npos);
}

}  // namespace
}  // namespace rdmacoll
