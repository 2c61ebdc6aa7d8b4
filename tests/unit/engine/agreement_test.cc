// The agreement of a group's ranks covers the settings of all transports, which are checked before
// any transport is opened.
#include "csrc/engine/connect/agreement.h"

#include <gtest/gtest.h>

#include "csrc/engine/connect/transport_table.h"

namespace rdmacoll::agreement_test {
namespace {

Config with(const std::string& name, const std::string& value) {
  Config config;
  config.settings.set(name, value);
  return config;
}

TEST(Agreement, CoversWhatTransportsMustHaveAlike) {
  EXPECT_EQ(agreement_hash(with("RDMACOLL_HCA", "mlx5_1")), agreement_hash(Config()));
  EXPECT_NE(agreement_hash(with("RDMACOLL_IB_QPS", "2")), agreement_hash(Config()));
  Config ring;
  ring.algorithm = "ring";
  EXPECT_NE(agreement_hash(ring), agreement_hash(Config()));
}

TEST(Agreement, SettingsOfTransportsAreCheckedWhicheverIsUsed) {
  Config config = with("RDMACOLL_IB_QPS", "many");
  config.transport = "shm";
  const Status refused = check_transport_settings(config);
  EXPECT_EQ(refused.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(refused.message(),
            "RDMACOLL_IB_QPS='many' is not valid; use an integer from 1 to 8 or unset it");
}

}  // namespace
}  // namespace rdmacoll::agreement_test
