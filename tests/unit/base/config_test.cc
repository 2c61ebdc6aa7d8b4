// Config from the environment: defaults, every setting, and what is said of every bad value.
#include "csrc/base/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "csrc/base/log.h"

namespace rdmacoll::config_test {
namespace {

constexpr const char* kVariables[] = {"RDMACOLL_LOG",
                                      "RDMACOLL_HOST_ID",
                                      "RDMACOLL_TRANSPORT",
                                      "RDMACOLL_ALGO",
                                      "RDMACOLL_STORES",
                                      "RDMACOLL_BLOCK_BYTES",
                                      "RDMACOLL_CONNECT_TIMEOUT_MS",
                                      "RDMACOLL_SPIN_US",
                                      "RDMACOLL_REQUIRE",
                                      "RDMACOLL_TUNING",
                                      "RDMACOLL_SECRET_FILE",
                                      "RDMACOLL_DETERMINISTIC",
                                      "RDMACOLL_STALL_TIMEOUT_MS",
                                      "LOCAL_RANK"};

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    clear();
    std::string name = ::testing::TempDir() + "config_test_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    clear();
    std::filesystem::remove_all(folder_);
  }

  static void clear() {
    for (const char* name : kVariables) unsetenv(name);
  }
  std::string write_file(const std::string& text) const {
    const std::string path = folder_ / "file";
    std::ofstream(path) << text;
    return path;
  }
  static Config read() {
    Result<Config> config = Config::from_environment();
    EXPECT_TRUE(config.ok()) << config.status().message();
    return config.ok() ? config.take() : Config();
  }
  static Config read_with(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    const Config config = read();
    unsetenv(name);
    return config;
  }
  static void expect_refused(const char* name, const std::string& value,
                             const std::string& allowed) {
    setenv(name, value.c_str(), 1);
    const Result<Config> config = Config::from_environment();
    unsetenv(name);
    ASSERT_FALSE(config.ok()) << name << "=" << value;
    EXPECT_EQ(config.status().code(), StatusCode::InvalidArgument);
    EXPECT_EQ(config.status().message(),
              std::string(name) + "='" + value + "' is not valid; use " + allowed + " or unset it");
  }

  std::filesystem::path folder_;
};

TEST_F(ConfigTest, DefaultsAreThoseOfTheStruct) {
  const Config config = read(), defaults;
  EXPECT_EQ(config.log_level, LogLevel::Warn);
  EXPECT_EQ(config.host_id, "");
  EXPECT_EQ(config.transport, "auto");
  EXPECT_EQ(config.algorithm, "auto");
  EXPECT_EQ(config.block_bytes, defaults.block_bytes);
  EXPECT_EQ(config.connect_timeout_ms, defaults.connect_timeout_ms);
  EXPECT_EQ(config.spin_us, defaults.spin_us);
  EXPECT_EQ(config.require, "");
  EXPECT_EQ(config.place.local_rank, 0);
}

TEST_F(ConfigTest, TheSecretIsReadFromItsFile) {
  const std::string path = write_file("0123456789abcdef");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  const Config config = read_with("RDMACOLL_SECRET_FILE", path);
  EXPECT_EQ(config.secret.path, path);
  EXPECT_EQ(config.secret.text, "0123456789abcdef");
  EXPECT_EQ(config.agreement(), Config().agreement());  // it travels in the open
  std::filesystem::remove(path);
  EXPECT_EQ(read().secret.text, "");
}

// An empty variable of a script leaves it so, and would make a job that anybody can join.
TEST_F(ConfigTest, ASecretFileWithoutANameIsRefused) {
  setenv("RDMACOLL_SECRET_FILE", "", 1);
  const Status refused = Config::from_environment().status();
  EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(refused.message().starts_with("RDMACOLL_SECRET_FILE='' names no file"));
}

TEST_F(ConfigTest, AnEmptyVariableIsUnset) {
  for (const char* name : kVariables) setenv(name, "", 1);
  unsetenv("RDMACOLL_SECRET_FILE");
  const Config config = read(), defaults;
  EXPECT_EQ(config.algorithm, "auto");
  EXPECT_EQ(config.block_bytes, defaults.block_bytes);
  EXPECT_EQ(config.host_id, "");
  EXPECT_EQ(config.require, "");
}

TEST_F(ConfigTest, EverySettingIsRead) {
  EXPECT_EQ(read_with("RDMACOLL_LOG", "error").log_level, LogLevel::Error);
  EXPECT_EQ(read_with("RDMACOLL_LOG", "warn").log_level, LogLevel::Warn);
  EXPECT_EQ(read_with("RDMACOLL_LOG", "info").log_level, LogLevel::Info);
  EXPECT_EQ(read_with("RDMACOLL_LOG", "debug").log_level, LogLevel::Debug);
  EXPECT_EQ(read_with("RDMACOLL_HOST_ID", "rack 7").host_id, "rack 7");
  EXPECT_EQ(read_with("RDMACOLL_TRANSPORT", "shm").transport, "shm");
  EXPECT_EQ(read_with("RDMACOLL_REQUIRE", "verbs").require, "verbs");
  EXPECT_EQ(read_with("RDMACOLL_ALGO", "ring").algorithm, "ring");
  EXPECT_EQ(read_with("RDMACOLL_ALGO", "").algorithm, "auto");
  EXPECT_EQ(read_with("RDMACOLL_BLOCK_BYTES", "65536").block_bytes, 65536u);
  EXPECT_EQ(read_with("RDMACOLL_BLOCK_BYTES", "1073741824").block_bytes, 1u << 30);
  EXPECT_EQ(read_with("RDMACOLL_CONNECT_TIMEOUT_MS", "1").connect_timeout_ms, 1);
  EXPECT_EQ(read_with("RDMACOLL_CONNECT_TIMEOUT_MS", "86400000").connect_timeout_ms, 86'400'000);
  EXPECT_EQ(read_with("RDMACOLL_SPIN_US", "-1").spin_us, -1);
  EXPECT_EQ(read_with("RDMACOLL_SPIN_US", "0").spin_us, 0);
}

TEST_F(ConfigTest, TheLocalRankIsNotOursToRefuse) {
  EXPECT_EQ(read_with("LOCAL_RANK", "3").place.local_rank, 3);
  for (const char* other : {"", "-1", "none", "3x", "99999999999999999999"})
    EXPECT_EQ(read_with("LOCAL_RANK", other).place.local_rank, 0) << other;
}

TEST_F(ConfigTest, BadChoicesAreNamedWithWhatIsAllowed) {
  expect_refused("RDMACOLL_LOG", "verbose", "one of error, warn, info, debug");
  expect_refused("RDMACOLL_LOG", "WARN", "one of error, warn, info, debug");
  expect_refused("RDMACOLL_STORES", "both", "one of auto, cached, streamed");
}

TEST_F(ConfigTest, TheTuningFileIsRead) {
  EXPECT_EQ(read().tuning.text, "");
  const std::string path = write_file("# as it is\n");
  const Config config = read_with("RDMACOLL_TUNING", path);
  EXPECT_EQ(config.tuning.path, path);
  EXPECT_EQ(config.tuning.text, "# as it is\n");
  EXPECT_NE(config.agreement(), read().agreement());
}

TEST_F(ConfigTest, ATuningFileThatCannotBeReadIsNamed) {
  const auto expect = [](const std::string& path, const std::string& why) {
    setenv("RDMACOLL_TUNING", path.c_str(), 1);
    const Result<Config> config = Config::from_environment();
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.status().code(), StatusCode::InvalidArgument);
    EXPECT_EQ(config.status().message(),
              "RDMACOLL_TUNING='" + path + "' " + why +
                  "; name a file that `rdmacoll tune` has written, or unset it");
  };
  expect("/nowhere/table", "cannot be read: No such file or directory");
  expect("/tmp", "is not a regular file");
  const std::string pipe = folder_ / "pipe";  // and not waited for
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect(pipe, "is not a regular file");
  std::filesystem::remove(pipe);
  expect(write_file(std::string((1 << 20) + 1, '#')), "has more than 1048576 bytes");
}

TEST_F(ConfigTest, BadIntegersAreNamedWithTheirRange) {
  const std::vector<std::string> never = {
      "many", "12k", "1.5", "0x100000", " ", "100000 ", "99999999999999999999"};
  const auto expect_all_refused = [&](const char* name, std::vector<std::string> values,
                                      const std::string& allowed) {
    values.insert(values.end(), never.begin(), never.end());
    for (const std::string& value : values) expect_refused(name, value, allowed);
  };
  expect_all_refused("RDMACOLL_BLOCK_BYTES", {"65535", "1073741825", "-1"},
                     "an integer from 65536 to 1073741824");
  expect_all_refused("RDMACOLL_CONNECT_TIMEOUT_MS", {"0", "86400001"},
                     "an integer from 1 to 86400000");
  expect_all_refused("RDMACOLL_SPIN_US", {"-2", "1000001"}, "an integer from -1 to 1000000");
  expect_all_refused("RDMACOLL_DETERMINISTIC", {"-1", "2"}, "one of 0, 1, layout");
  expect_all_refused("RDMACOLL_STALL_TIMEOUT_MS", {"-1", "86400001"},
                     "an integer from 0 to 86400000");
  expect_refused("RDMACOLL_STALL_TIMEOUT_MS", "4999", "0 or 5000 and more");
}

TEST_F(ConfigTest, TheAgreementIsOfWhatRanksMustShare) {
  const std::string defaults = read().agreement();
  EXPECT_EQ(read().agreement(), defaults);
  EXPECT_NE(read_with("RDMACOLL_ALGO", "ring").agreement(), defaults);
  EXPECT_NE(read_with("RDMACOLL_BLOCK_BYTES", "65536").agreement(), defaults);
  EXPECT_NE(read_with("RDMACOLL_TRANSPORT", "verbs").agreement(), defaults);
  EXPECT_NE(read_with("RDMACOLL_DETERMINISTIC", "1").agreement(), defaults);
  EXPECT_NE(read_with("RDMACOLL_DETERMINISTIC", "layout").agreement(), defaults);
  EXPECT_EQ(read_with("RDMACOLL_LOG", "debug").agreement(), defaults);
  EXPECT_EQ(read_with("RDMACOLL_HOST_ID", "b").agreement(), defaults);
  EXPECT_EQ(read_with("RDMACOLL_SPIN_US", "5").agreement(), defaults);
}

TEST_F(ConfigTest, SettingsOfTransportsStayAsTheyWereGiven) {
  const Config config = read_with("RDMACOLL_ANY_TRANSPORTS", "own");
  ASSERT_NE(config.settings.find("RDMACOLL_ANY_TRANSPORTS"), nullptr);
  EXPECT_EQ(*config.settings.find("RDMACOLL_ANY_TRANSPORTS"), "own");
  EXPECT_EQ(config.settings.find("PATH"), nullptr);
}

TEST(Log, WritesWhatItsLevelLetsThrough) {
  const Log log(LogLevel::Warn, "rank 3");
  EXPECT_TRUE(log.enabled(LogLevel::Error));
  EXPECT_FALSE(log.enabled(LogLevel::Info));
  ::testing::internal::CaptureStderr();
  log.write(LogLevel::Warn, "slow peer");
  log.write(LogLevel::Info, "not this");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "[rdmacoll rank 3] warning: slow peer\n");
}

}  // namespace
}  // namespace rdmacoll::config_test
