// Values as bytes: what was written is read, and what is cut off or makes no sense is an error.
#include "csrc/base/bytes.h"

#include <gtest/gtest.h>

namespace rdmacoll::bytes_test {
namespace {

enum class Color : uint8_t { Red, Green, Blue };
enum class Signed : int { None, One };
using Id = std::array<uint8_t, 3>;

Bytes all_kinds() {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.put(uint16_t{0xBEEF});
  writer.put(-2.5);
  writer.put(true);
  writer.put(Color::Blue);
  writer.put(Signed::One);
  writer.put(Id{1, 2, 3});
  writer.put("a text");
  writer.put(std::string());
  writer.put(std::vector<int64_t>{-1, INT64_MAX});
  writer.put_count(2);
  writer.put(uint8_t{8});
  writer.put(uint8_t{9});
  return bytes;
}

// Whether all of it was there.
bool read_all_kinds(ByteReader& reader) {
  const bool is_same =
      reader.get<uint16_t>() == 0xBEEF && reader.get<double>() == -2.5 && reader.flag() &&
      reader.up_to(Color::Blue) == Color::Blue && reader.up_to(Signed::One) == Signed::One &&
      reader.get<Id>() == Id{1, 2, 3} && reader.text() == "a text" && reader.text().empty() &&
      reader.numbers() == std::vector<int64_t>{-1, INT64_MAX} && reader.count(1) == 2 &&
      reader.get<uint8_t>() == 8 && reader.get<uint8_t>() == 9;
  return is_same && reader.is_complete();
}

TEST(Bytes, WhatWasWrittenIsRead) {
  const Bytes bytes = all_kinds();
  ByteReader reader(bytes);
  EXPECT_TRUE(read_all_kinds(reader));
  ByteReader of_text(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  EXPECT_TRUE(read_all_kinds(of_text));
}

TEST(Bytes, WhatIsCutOffOrLongerIsNotComplete) {
  const Bytes bytes = all_kinds();
  for (size_t count = 0; count < bytes.size(); ++count) {
    ByteReader reader{std::span(bytes).first(count)};
    EXPECT_FALSE(read_all_kinds(reader)) << count;
  }
  Bytes longer = bytes;
  longer.push_back(std::byte{0});
  ByteReader reader(longer);
  EXPECT_FALSE(read_all_kinds(reader));
  EXPECT_TRUE(reader.is_good());
  EXPECT_FALSE(reader.is_complete());
}

TEST(Bytes, OnceTheyRunOutAllFurtherIsZero) {
  const Bytes bytes(7, std::byte{1});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.get<uint64_t>(), 0U);
  EXPECT_FALSE(reader.is_good());
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(reader.get<uint8_t>(), 0U) << "there would be one";
  EXPECT_TRUE(reader.text().empty());
  EXPECT_TRUE(reader.numbers().empty());
  EXPECT_EQ(reader.count(1), 0U);
  EXPECT_FALSE(reader.flag());
  EXPECT_EQ(reader.up_to(Color::Blue), Color::Red);
  EXPECT_FALSE(reader.is_complete());
}

TEST(Bytes, ALengthIsNoMoreThanWhatFollows) {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.put_count(UINT32_MAX);
  writer.put(uint64_t{0});
  EXPECT_TRUE(ByteReader(bytes).text().empty());
  EXPECT_TRUE(ByteReader(bytes).numbers().empty());
  EXPECT_EQ(ByteReader(bytes).count(sizeof(uint64_t)), 0U);

  Bytes two;
  ByteWriter(two).put_count(2);
  two.resize(two.size() + 2 * sizeof(uint64_t));
  EXPECT_EQ(ByteReader(two).count(sizeof(uint64_t)), 2U);
  EXPECT_EQ(ByteReader(two).count(sizeof(uint64_t) + 1), 0U);
}

TEST(Bytes, ATextIsNoLongerThanItMayBe) {
  Bytes bytes;
  ByteWriter(bytes).put("four");
  EXPECT_EQ(ByteReader(bytes).text(4), "four");
  ByteReader reader(bytes);
  EXPECT_TRUE(reader.text(3).empty());
  EXPECT_FALSE(reader.is_good());
}

TEST(Bytes, FlagsAndNamedValuesAreNoOthers) {
  for (const uint8_t byte : {2, 3, 128, 255}) {
    const Bytes bytes{std::byte{byte}};
    ByteReader flag(bytes);
    EXPECT_FALSE(flag.flag());
    EXPECT_FALSE(flag.is_good()) << int{byte};
    ByteReader color(bytes);
    const Color read = color.up_to(Color::Blue);
    EXPECT_EQ(color.is_good(), byte == 2);
    EXPECT_EQ(read, byte == 2 ? Color::Blue : Color::Red);
  }
  for (const int number : {-1, 2, INT32_MIN}) {
    Bytes bytes;
    ByteWriter(bytes).put(number);
    ByteReader reader(bytes);
    EXPECT_EQ(reader.up_to(Signed::One), Signed::None);
    EXPECT_FALSE(reader.is_good()) << number;
  }
}

TEST(Bytes, WhatIsExpectedInVainEndsTheReading) {
  const Bytes bytes = all_kinds();
  ByteReader reader(bytes);
  reader.expect(true);
  EXPECT_TRUE(reader.is_good());
  reader.expect(false);
  reader.expect(true);
  EXPECT_FALSE(reader.is_good());
  EXPECT_TRUE(reader.at_end());
}

}  // namespace
}  // namespace rdmacoll::bytes_test
