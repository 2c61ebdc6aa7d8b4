// AppendedRecords: any order, and bytes that nobody wrote.
#include "csrc/engine/connect/appended_records.h"

#include <gtest/gtest.h>

namespace rdmacoll::appended_records_test {
namespace {

using Says = std::vector<std::optional<std::string>>;

TEST(AppendedRecordsTest, EachRanksInAnyOrder) {
  const std::string bytes = appended_record(2, std::string("b\0c", 3)) + appended_record(0, "");
  EXPECT_EQ(parse_appended(bytes, 4).take(),
            (Says{"", std::nullopt, std::string("b\0c", 3), std::nullopt}));
  EXPECT_EQ(parse_appended("", 2).take(), (Says{std::nullopt, std::nullopt}));
}

TEST(AppendedRecordsTest, WhatNobodyWroteIsRefused) {
  const std::string sound = appended_record(1, "word") + appended_record(0, "other");
  for (size_t bytes = 1; bytes < sound.size(); ++bytes) {
    const bool whole_record = bytes == appended_record(1, "word").size();
    EXPECT_EQ(parse_appended(sound.substr(0, bytes), 2).ok(), whole_record) << bytes;
  }
  const auto twice = parse_appended(sound + appended_record(1, "again"), 2);
  EXPECT_EQ(twice.status().code(), StatusCode::InvalidArgument);
  EXPECT_FALSE(parse_appended(sound, 1).ok());  // of a rank that there is not
}

}  // namespace
}  // namespace rdmacoll::appended_records_test
