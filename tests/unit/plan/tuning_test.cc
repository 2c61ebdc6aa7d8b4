// Tuning: what a table may look like, and what is said of one that is wrong.
#include "csrc/plan/choice/tuning.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rdmacoll::tuning_test {
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
      "up_to=BYTES|any algorithm, or: link network|memory COST=NUMBER...";
  expect_refused("# one\nall_reduce mapped world=2 ring", "line 2" + row);
  for (const std::string word : {"all_reduse", "barrier"}) {
    expect_refused(word + " mapped world=2 up_to=any ring",
                   "line 1: '" + word +
                       "' is no collective that can be tuned; there are all_reduce, broadcast, "
                       "reduce, all_gather, reduce_scatter, all_to_all, "
                       "gather, scatter");
  }
  expect_refused(
      "all_reduce near world=2 up_to=any ring",
      "line 1: 'near' is no layout; give mapped (all peers share memory), unmapped (none do) "
      "or hosts=2x4 (2 hosts of 4 ranks)");
  for (const std::string word : {"world=1", "world=16385", "world=2x", "world=", "ranks=2"}) {
    expect_refused("all_reduce mapped " + word + " up_to=any ring",
                   "line 1: '" + word + "' is not valid; give world=2 to world=16384");
  }
  for (const std::string word : {"up_to=", "up_to=-1", "up_to=1T", "up_to=K", "up_to=1.5K", "16K",
                                 "up_to=18446744073709551615", "up_to=99999999999G"}) {
    expect_refused("all_reduce mapped world=2 " + word + " ring",
                   "line 1: '" + word +
                       "' is not valid; give bytes, as in up_to=16384 or up_to=16K, or up_to=any");
  }
}

TEST(TuningTest, RowsMaySayWhatLinksCost) {
  auto tuning = Tuning::parse(
      "link network latency_ns=1 overhead_ns=2 gap_ps=3 host_gap_ps=4\n"
      "link memory gap_ps=0\n");
  ASSERT_TRUE(tuning.ok()) << tuning.status().message();
  const Links defaults;
  EXPECT_EQ(tuning.value().links().network, (Links::Network{1, 2, 3, 4}));
  EXPECT_EQ(tuning.value().links().memory.gap_ps, 0);
  EXPECT_EQ(tuning.value().links().memory.latency_ns, defaults.memory.latency_ns);
  expect_refused("link wire gap_ps=1",
                 "line 1: 'wire' is no link; give link memory or link network");
  expect_refused("link", "line 1: '' is no link; give link memory or link network");
  for (const std::string word :
       {"host_gap_ps=1", "gap_ps=", "gap_ps=-1", "gap_ps=1000001", "gap"}) {
    expect_refused("#\nlink memory " + word,
                   "line 2: '" + word +
                       "' is no cost of link memory; give latency_ns=0 to 1000000000, "
                       "overhead_ns=0 to 1000000000, gap_ps=0 to 1000000");
  }
}

TEST(TuningTest, HostsAreNamedByTheirRanks) {
  const std::string row = "all_reduce hosts=2x2 world=4 up_to=any rails";
  EXPECT_EQ(rows_of(row, Collective::AllReduce, Islands::of_shape("2x2").take()).size(), 1u);
  EXPECT_TRUE(rows_of(row, Collective::AllReduce, Islands::of_shape("3+1").take()).empty());
  EXPECT_TRUE(rows_of(row, Collective::AllReduce, kMapped(4)).empty());
  expect_refused("all_reduce hosts=2x3 world=4 up_to=any rails",
                 "line 1: 'hosts=2x3' has 6 ranks on 2 host(s); give several hosts, one of them "
                 "with several ranks, and as many as world= says");
  expect_refused("all_reduce hosts=4 world=4 up_to=any ring",
                 "line 1: 'hosts=4' has 4 ranks on 1 host(s); give several hosts, one of them "
                 "with several ranks, and as many as world= says");
  expect_refused("all_reduce hosts=2x world=4 up_to=any ring",
                 "line 1: '2x' is no number of hosts and ranks; give 2x4 (2 hosts of 4 ranks), "
                 "3+1 (a host of 3 and one of 1) or 2x4+1, with at most 4096 ranks on a host and "
                 "16384 in all");
}

TEST(TuningTest, AShapeThatIsNoTextIsShownAsText) {
  const auto tuning = Tuning::parse("all_reduce hosts=\x1b[2J world=4 up_to=any rails");
  ASSERT_FALSE(tuning.ok());
  EXPECT_TRUE(tuning.status().message().starts_with("line 1: '?[2J' is no number of hosts"))
      << tuning.status().message();
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
}  // namespace rdmacoll::tuning_test
