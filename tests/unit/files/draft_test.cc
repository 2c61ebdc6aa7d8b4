// What is written to a draft is what its parts have: by hand, and in random operations beside a
// string.
#include "csrc/files/draft.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/files/tables_for_test.h"

namespace rdmacoll::draft_test {
namespace {

using namespace files;

class DraftTest : public testing::Test {
 protected:
  Draft::Host host() {
    return {tables, blocks, [this] { return Result<uint32_t>(++numbers); }};
  }
  static std::string read(Draft& draft, uint64_t first, uint64_t count) {
    std::string text(count, '?');
    auto had = draft.read(first, std::as_writable_bytes(std::span(text)));
    RDMACOLL_CHECK(had.ok());
    text.resize(had.value());
    return text;
  }
  // What a reader has then.
  std::string stored(Draft& draft) {
    RDMACOLL_CHECK(draft.store().ok());
    const Parts parts = draft.parts();
    EXPECT_EQ(bytes_of(parts), draft.bytes());
    draft.publish(parts);
    return text_of(tables, parts, 0, draft.bytes());
  }

  TablesForTest tables;
  Blocks blocks{tables};
  uint32_t numbers = 0;
};

TEST_F(DraftTest, HasWhatWasWrittenBeforeAndAfterItIsStored) {
  Draft draft(host(), {});
  ASSERT_TRUE(draft.write(0, bytes_in("hello")).ok());
  ASSERT_TRUE(draft.write(3, bytes_in("p me")).ok());
  EXPECT_EQ(read(draft, 0, 100), "help me");
  EXPECT_EQ(stored(draft), "help me");
  EXPECT_EQ(read(draft, 1, 3), "elp");
  EXPECT_FALSE(draft.is_changed());
  ASSERT_TRUE(draft.write(4, bytes_in("her")).ok());
  EXPECT_EQ(stored(draft), "helpher");
}

TEST_F(DraftTest, AHoleIsZerosAndTakesNoTable) {
  Draft draft(host(), {});
  ASSERT_TRUE(draft.resize(uint64_t{1} << 40).ok());
  ASSERT_TRUE(draft.write((uint64_t{1} << 39) + 5, bytes_in("x")).ok());
  ASSERT_TRUE(draft.store().ok());
  const Parts parts = draft.parts();
  EXPECT_EQ(bytes_of(parts), uint64_t{1} << 40);
  EXPECT_EQ(tables.all.size(), 1u);
  EXPECT_EQ(text_of(tables, parts, uint64_t{1} << 39, 7), std::string("\0\0\0\0\0x\0", 7));
}

TEST_F(DraftTest, WhatWasCutOffIsZeroWhenTheFileGrowsAgain) {
  Draft draft(host(), {});
  ASSERT_TRUE(draft.write(0, bytes_in("secret")).ok());
  ASSERT_TRUE(draft.resize(2).ok());
  ASSERT_TRUE(draft.resize(4).ok());
  ASSERT_TRUE(draft.write(5, bytes_in("!")).ok());
  EXPECT_EQ(stored(draft), std::string("se\0\0\0!", 6));
}

TEST_F(DraftTest, AddsPartsBehindThoseThatAreThere) {
  Draft first(host(), {});
  ASSERT_TRUE(first.write(0, bytes_in("abc")).ok());
  stored(first);
  Draft more(host(), first.parts());
  ASSERT_TRUE(more.write(3, bytes_in("de")).ok());
  ASSERT_TRUE(more.store().ok());
  ASSERT_TRUE(more.added().has_value());
  EXPECT_EQ(more.added()->size(), 1u);
  EXPECT_EQ(text_of(tables, more.parts(), 0, 5), "abcde");
  ASSERT_TRUE(more.write(1, bytes_in("X")).ok());
  ASSERT_TRUE(more.store().ok());
  EXPECT_FALSE(more.added().has_value());
}

TEST_F(DraftTest, KeepsAllWithoutRoomAndCanBeStoredLater) {
  Draft draft(host(), {});
  const std::string large(kPartBytes + 17, 'a');
  ASSERT_TRUE(draft.write(0, bytes_in(large)).ok());
  tables.has_room = false;
  EXPECT_EQ(draft.store().code(), StatusCode::System);
  EXPECT_TRUE(draft.is_changed());
  tables.has_room = true;
  EXPECT_EQ(stored(draft), large);
}

TEST_F(DraftTest, SaysWhenItCannotReadWhatItIsToChange) {
  Draft first(host(), {});
  ASSERT_TRUE(first.write(0, bytes_in("abc")).ok());
  stored(first);
  Draft draft(host(), first.parts());
  tables.fails_reads = true;
  EXPECT_EQ(draft.write(1, bytes_in("x")).code(), StatusCode::PeerFailed);
  tables.fails_reads = false;
  EXPECT_EQ(read(draft, 0, 3), "abc");
}

TEST_F(DraftTest, HasFewPartsInMemory) {
  Draft draft(host(), {});
  const std::string part(kPartBytes, 'p');
  for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(draft.write(i * kPartBytes, bytes_in(part)).ok());
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(draft.write((i * 7 % 20) * kPartBytes + i, bytes_in("q")).ok());
  }
  EXPECT_LE(tables.lent_bytes, 9 * kPartBytes);
  ASSERT_TRUE(draft.store().ok());
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(text_of(tables, draft.parts(), (i * 7 % 20) * kPartBytes + i, 1), "q");
  }
}

// Tables that are no part of a version, and are to be freed: all that there are and no others.
TEST_F(DraftTest, NamesTheTablesThatItUsesNoMore) {
  Draft draft(host(), {});
  ASSERT_TRUE(draft.write(0, bytes_in("abc")).ok());
  ASSERT_TRUE(draft.store().ok());
  ASSERT_TRUE(draft.write(1, bytes_in("x")).ok());
  ASSERT_TRUE(draft.store().ok());
  EXPECT_EQ(draft.take_unused(), std::vector<uint32_t>{1});
  EXPECT_TRUE(draft.take_unused().empty());
  ASSERT_TRUE(draft.resize(0).ok());
  EXPECT_EQ(draft.take_unused(), std::vector<uint32_t>{2});
}

// What was waited for in vain is written to where it was to go, though nobody has that any more.
TEST_F(DraftTest, KeepsWhereALateAnswerGoes) {
  Draft writer(host(), {});
  const std::string text(200'000, 'x');
  ASSERT_TRUE(writer.write(0, bytes_in(text)).ok());
  ASSERT_TRUE(writer.store().ok());
  tables.answers_late = true;
  {
    Draft draft(host(), writer.parts());
    std::string out(10, ' ');
    const auto into = std::as_writable_bytes(std::span(out));
    EXPECT_EQ(draft.read(0, into).status().code(), StatusCode::Timeout);
    EXPECT_EQ(draft.write(5, bytes_in("abc")).code(), StatusCode::Timeout);
    const auto room = std::make_shared<std::vector<float>>(8);
    const std::span<std::byte> odd(reinterpret_cast<std::byte*>(room->data()) + 5, 10);
    EXPECT_EQ(files::read(tables, writer.parts(), 0, odd, room).code(), StatusCode::Timeout);
    EXPECT_EQ(files::read(tables, writer.parts(), 1, odd, room).code(), StatusCode::Timeout);
  }
  ASSERT_EQ(tables.late.size(), 4u);
  for (const Wanted& one : tables.late) {
    // Who has it alone is who answers.
    EXPECT_EQ(one.keeps.use_count(), 1) << one.into.size();
    EXPECT_TRUE(tables.answer({&one, 1}).ok());
    EXPECT_EQ(std::memcmp(one.into.data(), text.data(), one.into.size_bytes()), 0);
  }
}

// A seed, its operations: sizes of few bytes, and such as cross parts.
TEST_F(DraftTest, IsAsAStringIsAfterRandomOperations) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const uint64_t most = seed % 3 == 0 ? 3 * kPartBytes : seed % 3 == 1 ? 5'000'000 : 300;
    const auto below = [&](uint64_t limit) { return limit == 0 ? 0 : random() % limit; };
    std::string model;
    Parts version;
    auto draft = std::make_unique<Draft>(host(), version);
    for (int i = 0; i < 60; ++i) {
      const uint64_t first = below(3) == 0 ? model.size() : below(most);
      const uint64_t count = below(4) == 0 ? below(most / 2) : below(300);
      switch (below(6)) {
        case 0:
        case 1:
        case 2: {
          const std::string data(count, static_cast<char>('a' + below(26)));
          ASSERT_TRUE(draft->write(first, bytes_in(data)).ok());
          if (count > 0 && model.size() < first + count) model.resize(first + count);
          model.replace(count > 0 ? first : 0, count, data);
          break;
        }
        case 3:
          ASSERT_TRUE(draft->resize(first).ok());
          model.resize(first);
          break;
        case 4:
          ASSERT_EQ(read(*draft, first, count),
                    first < model.size() ? model.substr(first, count) : "")
              << "seed " << seed;
          break;
        default:
          ASSERT_TRUE(draft->store().ok());
          version = draft->parts();
          if (below(2) == 0) {
            draft->publish(version);
          } else {
            draft = std::make_unique<Draft>(host(), version);
          }
          ASSERT_EQ(text_of(tables, version, 0, model.size()), model) << "seed " << seed;
      }
      ASSERT_EQ(draft->bytes(), model.size());
    }
  }
}

}  // namespace
}  // namespace rdmacoll::draft_test
