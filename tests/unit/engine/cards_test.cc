// Cards: what was said comes back, whatever the ranks have in common, and takes little memory.
#include "csrc/engine/connect/cards.h"

#include <gtest/gtest.h>

#include <random>

#include "csrc/engine/connect/columns.h"

namespace rdmacoll::cards_test {
namespace {

std::vector<std::string> rows_of(const std::vector<Columns::Row>& rows) {
  const Columns columns(rows);
  std::vector<std::string> texts;
  for (uint32_t row = 0; row < rows.size(); ++row) texts.push_back(columns.row(row));
  return texts;
}

TEST(Columns, KeepOneRowAndNone) {
  EXPECT_EQ(rows_of({{"one", 7}}), std::vector<std::string>{"one"});
  EXPECT_EQ(rows_of({{"", 0}, {"", 1}}), (std::vector<std::string>{"", ""}));
}

// The same once; by part: the 1 and 2; by row, and as one: a to d.
TEST(Columns, KeepWhatIsAlikeInAllInPartsAndInColumns) {
  EXPECT_EQ(rows_of({{"x1aa", 5}, {"x1bb", 5}, {"x2cc", 9}, {"x2dd", 9}}),
            (std::vector<std::string>{"x1aa", "x1bb", "x2cc", "x2dd"}));
  EXPECT_EQ(rows_of({{"1a", 0}, {"2b", 1}, {"1c", 0}, {"3d", 1}}),
            (std::vector<std::string>{"1a", "2b", "1c", "3d"}));
}

TEST(Columns, GiveBackAnyBytes) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const size_t count = 1 + random() % 20, size = random() % 30;
    const uint32_t letters = 1 + random() % 3;
    std::vector<std::string> texts(count);
    std::vector<Columns::Row> rows;
    for (std::string& text : texts) {
      for (size_t i = 0; i < size; ++i) text += static_cast<char>(random() % letters * 127);
      rows.push_back({text, static_cast<uint16_t>(random() % 4)});
    }
    EXPECT_EQ(rows_of(rows), texts) << trial;
  }
}

TEST(Cards, OfRecordsOfSeveralSizesComeBack) {
  const Islands islands = Islands::by_key({"a", "b", "a", "b", ""});
  std::vector<std::string> records;
  for (uint32_t rank = 0; rank < 5; ++rank) {
    records.push_back(GroupRecord{.agreement = 1,
                                  .rank = rank,
                                  .world = 5,
                                  .address = "host" + std::string(rank % 3, 'x'),
                                  .key = "key",
                                  .token = 10 + rank}
                          .encode());
  }
  const Cards cards(records, islands);
  ASSERT_EQ(cards.world(), 5u);
  for (uint32_t rank = 0; rank < 5; ++rank) EXPECT_EQ(cards.of(rank).encode(), records[rank]);
}

}  // namespace
}  // namespace rdmacoll::cards_test
