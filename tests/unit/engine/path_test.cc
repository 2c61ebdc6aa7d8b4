// Paths in words.
#include "csrc/engine/connect/path.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::path_test {
namespace {

TEST(Paths, InOneLine) {
  FakeTransport shm("shm", ""), verbs("verbs", ""), tcp("tcp", "");
  verbs.set_device("mlx5_0 port 1");
  tcp.set_device("eth0 10.0.0.1");
  const auto path = [](FakeTransport& transport, const std::string& host) {
    return Path{.transport = &transport, .same_host = host == "here", .host = host};
  };
  const auto summary = [](const std::vector<Path>& paths, uint32_t not_met = 0) {
    std::map<uint32_t, Path> by_rank;
    for (const Path& one : paths) by_rank.emplace(by_rank.size() + 1, one);
    return summarize(by_rank, static_cast<uint32_t>(paths.size()) + 1 + not_met);
  };
  EXPECT_EQ(summary({}), "");
  EXPECT_EQ(summary({path(shm, "here"), path(shm, "here"), path(verbs, "b"), path(verbs, "b"),
                     path(verbs, "b")}),
            "shm to 2 ranks of this host; verbs (mlx5_0 port 1) to 3 ranks on 1 other host");
  EXPECT_EQ(summary({path(verbs, "here"), path(verbs, "b"), path(verbs, "c")}),
            "verbs (mlx5_0 port 1) to 1 rank of this host and 2 ranks on 2 other hosts");
  EXPECT_EQ(summary({path(shm, "here"), path(tcp, "b"), path(verbs, "c"), path(tcp, "d"),
                     path(verbs, "c")}),
            "shm to 1 rank of this host; tcp (eth0 10.0.0.1) to 2 ranks on 2 other hosts; "
            "verbs (mlx5_0 port 1) to 2 ranks on 1 other host");
  EXPECT_EQ(summary({path(shm, "here")}, 3),
            "shm to 1 rank of this host; to the others once they are needed");
}

}  // namespace
}  // namespace rdmacoll::path_test
