// Text from others, to be printed: control characters are spelled out, what people write stays.
#include "csrc/base/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace rdmacoll::printable_test {
namespace {

TEST(Printable, WhatPeopleWriteStays) {
  for (const char* text : {"", "rank 3 left: 'no memory'", "Grüße, 日本語, 🙂", "C:\\xff"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(printable("\033[2Jgone\r\n\a\x7f"), "\\x1b[2Jgone\\x0d\\x0a\\x07\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // C1: begins a control sequence, too
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt"),
            "\\xe2\\x80\\xaetxt");  // U+202E: from right to left
}

TEST(Printable, InvalidUtf8IsSpelledOut) {
  EXPECT_EQ(printable("\xff\x80"), "\\xff\\x80");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // an overlong ESC
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half a surrogate pair
  EXPECT_EQ(printable("a\xe6\x97"), "a\\xe6\\x97");         // cut short
}

TEST(Printable, LongTextIsCut) {
  EXPECT_EQ(printable(std::string(5000, 'x')), std::string(kPrintableBytesMax, 'x').append("..."));
  EXPECT_EQ(printable("ab\033", 5), "ab...");  // what is spelled out counts, and is not cut
  EXPECT_EQ(printable("abcde", 5), "abcde");
}

}  // namespace
}  // namespace rdmacoll::printable_test
