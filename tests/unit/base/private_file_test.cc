// Files in folders where others may write: what they have put there is neither followed nor opened.
#include "csrc/base/private_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace rdmacoll::private_file_test {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class PrivateFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "private_file_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ASSERT_EQ(::chmod(name.c_str(), 0777), 0);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write() {
    const Status written = write_private_file(folder_, "dump.json", "text");
    EXPECT_TRUE(written.ok()) << written.message();
    struct stat about{};
    ASSERT_EQ(::lstat((folder_ / "dump.json").c_str(), &about), 0);
    EXPECT_TRUE(S_ISREG(about.st_mode));
    EXPECT_EQ(about.st_mode & 0777, 0600u);
    EXPECT_EQ(about.st_uid, ::geteuid());
    EXPECT_EQ(content_of(folder_ / "dump.json"), "text");
  }
  std::ptrdiff_t entries() const {
    const fs::directory_iterator all(folder_);
    return std::distance(begin(all), end(all));
  }

  fs::path folder_;
};

TEST_F(PrivateFile, AppearsWholeAndReplacesTheOneBefore) {
  std::ofstream(folder_ / "dump.json") << "a longer text of another dump";
  write();
  EXPECT_EQ(entries(), 1);
}

TEST_F(PrivateFile, ALinkIsReplacedAndNotFollowed) {
  std::ofstream(folder_ / "victim") << "dear";
  fs::create_symlink(folder_ / "victim", folder_ / "dump.json");
  fs::create_symlink(folder_ / "victim", folder_ / "dump.json.part");  // what used to be written
  write();
  EXPECT_EQ(content_of(folder_ / "victim"), "dear");
}

// Opened for writing, a pipe that nobody reads would wait for ever.
TEST_F(PrivateFile, APipeIsReplacedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "dump.json").c_str(), 0666), 0);
  ASSERT_EQ(::mkfifo((folder_ / "dump.json.part").c_str(), 0666), 0);
  write();
}

TEST_F(PrivateFile, TheFolderIsMadeForThisUserAlone) {
  folder_ /= "new";
  write();
  struct stat about{};
  ASSERT_EQ(::stat(folder_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  folder_ = folder_.parent_path();
}

TEST_F(PrivateFile, WhatCannotBeWrittenIsAnErrorThatNamesIt) {
  ASSERT_TRUE(fs::create_directory(folder_ / "dump.json"));
  const Status taken = write_private_file(folder_, "dump.json", "text");
  EXPECT_EQ(taken.code(), StatusCode::System);
  EXPECT_NE(taken.message().find((folder_ / "dump.json").string()), std::string::npos);
  EXPECT_EQ(entries(), 1);  // nothing unfinished is left
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0666), 0);
  EXPECT_EQ(write_private_file(folder_ / "pipe", "dump.json", "text").code(), StatusCode::System);
  EXPECT_EQ(write_private_file(folder_ / "no" / "such", "dump.json", "").code(),
            StatusCode::System);
}

}  // namespace
}  // namespace rdmacoll::private_file_test
