// VerbsConfig from settings: defaults, each of them, and what is said of bad values.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "csrc/transport/verbs/settings/settings.h"

namespace rdmacoll::verbs_settings_test {
namespace {

VerbsConfig read_with(const std::string& name, const std::string& value) {
  Settings settings;
  settings.set(name, value);
  auto read = VerbsConfig::read(settings);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return read.ok() ? read.take() : VerbsConfig();
}

void expect_refused(const std::string& name, const std::vector<std::string>& values,
                    const std::string& allowed) {
  for (const std::string& value : values) {
    Settings settings;
    settings.set(name, value);
    const Status refused = check_verbs_settings(settings);
    EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
    EXPECT_EQ(refused.message(),
              name + "='" + value + "' is not valid; use " + allowed + " or unset it");
  }
}

TEST(VerbsSettings, DefaultsAreThoseOfTheStruct) {
  for (const VerbsConfig& config :
       {VerbsConfig::read(Settings()).take(), read_with("RDMACOLL_IB_RETRY_CNT", "")}) {
    EXPECT_EQ(config.hca, "");
    EXPECT_EQ(config.gid_index, -1);
    EXPECT_EQ(config.port, 0);
    EXPECT_EQ(config.mtu_bytes, 0);
    EXPECT_EQ(config.timeout_exponent, VerbsConfig().timeout_exponent);
    EXPECT_EQ(config.retry_count, VerbsConfig().retry_count);
    EXPECT_EQ(config.queue_pairs, 1);
  }
}

TEST(VerbsSettings, EachIsRead) {
  EXPECT_EQ(read_with("RDMACOLL_HCA", "^mlx5_0:1").hca, "^mlx5_0:1");
  EXPECT_EQ(read_with("RDMACOLL_GID_INDEX", "3").gid_index, 3);
  EXPECT_EQ(read_with("RDMACOLL_IB_PORT", "2").port, 2);
  EXPECT_EQ(read_with("RDMACOLL_IB_MTU", "4096").mtu_bytes, 4096);
  EXPECT_EQ(read_with("RDMACOLL_IB_TC", "106").traffic_class, 106);
  EXPECT_EQ(read_with("RDMACOLL_IB_SL", "5").service_level, 5);
  EXPECT_EQ(read_with("RDMACOLL_IB_TIMEOUT", "31").timeout_exponent, 31);
  EXPECT_EQ(read_with("RDMACOLL_IB_RETRY_CNT", "6").retry_count, 6);
  EXPECT_EQ(read_with("RDMACOLL_IB_QPS", "8").queue_pairs, 8);
}

TEST(VerbsSettings, BadValuesAreRefusedWithWhatIsAllowed) {
  expect_refused("RDMACOLL_IB_MTU", {"1500"}, "one of 256, 512, 1024, 2048, 4096");
  expect_refused("RDMACOLL_GID_INDEX", {"-2", "256", "x"}, "an integer from -1 to 255");
  expect_refused("RDMACOLL_IB_PORT", {"-1", "255"}, "an integer from 0 to 254");
  expect_refused("RDMACOLL_IB_TC", {"-1", "256"}, "an integer from 0 to 255");
  expect_refused("RDMACOLL_IB_SL", {"-1", "16"}, "an integer from 0 to 15");
  expect_refused("RDMACOLL_IB_TIMEOUT", {"0", "32"},
                 "an integer from 1 to 31 (0 would wait for ever for a dead peer)");
  expect_refused("RDMACOLL_IB_RETRY_CNT", {"0", "7"},
                 "an integer from 1 to 6 (7 would repeat for ever on some devices)");
  expect_refused("RDMACOLL_IB_QPS", {"0", "9"}, "an integer from 1 to 8");
}

}  // namespace
}  // namespace rdmacoll::verbs_settings_test
