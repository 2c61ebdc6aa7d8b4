// Config from the environment: defaults, every setting, and what is said of every bad value.
#include "csrc/base/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "csrc/base/log.h"

namespace rdmacoll {
namespace {

constexpr const char* kVariables[] = {"RDMACOLL_LOG",         "RDMACOLL_HOST_ID",
                                      "RDMACOLL_TRANSPORT",   "RDMACOLL_ALGO",
                                      "RDMACOLL_BLOCK_BYTES", "RDMACOLL_CONNECT_TIMEOUT_MS",
                                      "RDMACOLL_SPIN_US"};

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const char* name : kVariables) unsetenv(name);
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
}

TEST_F(ConfigTest, AnEmptyVariableIsUnset) {
  for (const char* name : kVariables) setenv(name, "", 1);
  const Config config = read(), defaults;
  EXPECT_EQ(config.algorithm, "auto");
  EXPECT_EQ(config.block_bytes, defaults.block_bytes);
  EXPECT_EQ(config.host_id, "");
}

TEST_F(ConfigTest, EverySettingIsRead) {
  EXPECT_EQ(read_with("RDMACOLL_LOG", "error").log_level, LogLevel::Error);
  EXPECT_EQ(read_with("RDMACOLL_LOG", "warn").log_level, LogLevel::Warn);
  EXPECT_EQ(read_with("RDMACOLL_LOG", "info").log_level, LogLevel::Info);
  EXPECT_EQ(read_with("RDMACOLL_LOG", "debug").log_level, LogLevel::Debug);
  EXPECT_EQ(read_with("RDMACOLL_HOST_ID", "rack 7").host_id, "rack 7");
  EXPECT_EQ(read_with("RDMACOLL_TRANSPORT", "shm").transport, "shm");
  for (const char* name : {"auto", "ring", "tree", "halving_doubling", "one_shot", "two_shot"})
    EXPECT_EQ(read_with("RDMACOLL_ALGO", name).algorithm, name);
  EXPECT_EQ(read_with("RDMACOLL_BLOCK_BYTES", "65536").block_bytes, 65536u);
  EXPECT_EQ(read_with("RDMACOLL_BLOCK_BYTES", "1073741824").block_bytes, 1u << 30);
  EXPECT_EQ(read_with("RDMACOLL_CONNECT_TIMEOUT_MS", "1").connect_timeout_ms, 1);
  EXPECT_EQ(read_with("RDMACOLL_CONNECT_TIMEOUT_MS", "86400000").connect_timeout_ms, 86'400'000);
  EXPECT_EQ(read_with("RDMACOLL_SPIN_US", "-1").spin_us, -1);
  EXPECT_EQ(read_with("RDMACOLL_SPIN_US", "0").spin_us, 0);
}

TEST_F(ConfigTest, BadChoicesAreNamedWithWhatIsAllowed) {
  expect_refused("RDMACOLL_LOG", "verbose", "one of error, warn, info, debug");
  expect_refused("RDMACOLL_LOG", "WARN", "one of error, warn, info, debug");
  expect_refused("RDMACOLL_TRANSPORT", "tcp", "one of auto, shm");
  expect_refused("RDMACOLL_ALGO", "rings",
                 "one of auto, ring, tree, halving_doubling, one_shot, two_shot");
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
}

TEST_F(ConfigTest, AgreementHashIsOfWhatRanksMustShare) {
  const uint64_t defaults = read().agreement_hash();
  EXPECT_EQ(read().agreement_hash(), defaults);
  EXPECT_NE(read_with("RDMACOLL_ALGO", "ring").agreement_hash(), defaults);
  EXPECT_NE(read_with("RDMACOLL_BLOCK_BYTES", "65536").agreement_hash(), defaults);
  EXPECT_EQ(read_with("RDMACOLL_LOG", "debug").agreement_hash(), defaults);
  EXPECT_EQ(read_with("RDMACOLL_HOST_ID", "b").agreement_hash(), defaults);
  EXPECT_EQ(read_with("RDMACOLL_SPIN_US", "5").agreement_hash(), defaults);
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
}  // namespace rdmacoll
