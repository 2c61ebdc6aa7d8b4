// The file with the job's secret: read whole, or refused with the reason and the remedy.
#include "csrc/base/secret_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "csrc/base/limits.h"

namespace rdmacoll::secret_file_test {
namespace {

class SecretFile : public ::testing::Test {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }

  void write(const std::string& secret, mode_t mode = 0600) {
    std::ofstream(path_, std::ios::binary) << secret;
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  void expect_refused(const std::string& why) {
    const auto secret = read_secret_file(path_);
    ASSERT_FALSE(secret.ok());
    EXPECT_EQ(secret.status().code(), StatusCode::InvalidArgument);
    const std::string& message = secret.status().message();
    EXPECT_TRUE(message.starts_with("RDMACOLL_SECRET_FILE='" + path_ + "' " + why)) << message;
    EXPECT_NE(message.find("chmod 600"), std::string::npos) << message;
  }

  const std::string path_ = ::testing::TempDir() + "secret_file_" + std::to_string(::getpid());
};

TEST_F(SecretFile, IsReadWithEveryByteOfIt) {
  const std::string secret("0123456789abcde\0\n", 17);
  for (const mode_t mode : {0600, 0400}) {
    write(secret, mode);
    auto read = read_secret_file(path_);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read.value(), secret);
  }
}

TEST_F(SecretFile, WhatOthersMayReadOrWriteIsRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0644}) {
    write(std::string(32, 's'), mode);
    expect_refused("is open to others than its owner");
  }
}

TEST_F(SecretFile, AnotherUsersIsRefused) {
  write(std::string(32, 's'));
  if (::chown(path_.c_str(), 12345, static_cast<gid_t>(-1)) != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }
  expect_refused("belongs to user 12345, neither to this user nor to root");
}

TEST_F(SecretFile, TooFewAndTooManyBytesAreRefused) {
  write(std::string(kSecretBytesMin - 1, 's'));
  expect_refused("has 15 bytes; a secret has 16 to 4096");
  write(std::string(kSecretBytesMax + 1, 's'));
  expect_refused("has more than 4096 bytes");
  write(std::string(kSecretBytesMax, 's'));
  EXPECT_TRUE(read_secret_file(path_).ok());
}

TEST_F(SecretFile, WhatIsNoFileIsRefusedAndNotWaitedFor) {
  expect_refused("cannot be read: No such file or directory");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_refused("is not a regular file");
}

}  // namespace
}  // namespace rdmacoll::secret_file_test
