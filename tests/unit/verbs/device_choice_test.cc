// Which device, port and GID are chosen, and what is said when none can be.
#include "csrc/transport/verbs/device/device_choice.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace rdmacoll::verbs::device_choice_test {
namespace {

bool admits(const std::string& list, const std::string& device, int port) {
  Result<HcaList> parsed = HcaList::parse(list);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() && parsed.value().admits(device, port);
}

TEST(HcaList, IsReadAsNcclReadsIt) {
  EXPECT_TRUE(admits("", "mlx5_0", 1));
  EXPECT_TRUE(admits("mlx5", "mlx5_0", 1));
  EXPECT_TRUE(admits("mlx5_1", "mlx5_10", 1));
  EXPECT_FALSE(admits("=mlx5_1", "mlx5_10", 1));
  EXPECT_TRUE(admits("=mlx5_1", "mlx5_1", 2));
  EXPECT_TRUE(admits("mlx5_0,mlx5_1:2", "mlx5_1", 2));
  EXPECT_FALSE(admits("mlx5_0,mlx5_1:2", "mlx5_1", 1));
  EXPECT_FALSE(admits("mlx5_0", "rxe0", 1));
  EXPECT_FALSE(admits("^mlx5_1", "mlx5_10", 1));
  EXPECT_TRUE(admits("^=mlx5_1", "mlx5_10", 1));
  EXPECT_FALSE(admits("^mlx5_1:2", "mlx5_1", 2));
  EXPECT_TRUE(admits("^mlx5_1:2", "mlx5_1", 1));
}

TEST(HcaList, SaysWhetherADeviceIsWorthOpening) {
  EXPECT_TRUE(admits("", "mlx5_0", 0));
  EXPECT_TRUE(admits("mlx5_0:2", "mlx5_0", 0));
  EXPECT_FALSE(admits("mlx5_0:2", "mlx5_1", 0));
  EXPECT_TRUE(admits("^mlx5_0:2", "mlx5_0", 0));
  EXPECT_FALSE(admits("^mlx5_0", "mlx5_0", 0));
}

TEST(HcaList, SaysWhatIsWrongWithTheText) {
  const std::string form = "; name devices as in \"mlx5_0,mlx5_1:2\", \"=mlx5_1\" or \"^mlx5_2\"";
  const std::pair<const char*, const char*> bad[] = {
      {"^", "a name is empty"},
      {"mlx5_0,", "a name is empty"},
      {":1", "a name is empty"},
      {"mlx5_0:", "the port of 'mlx5_0:' is not a number from 1 to 254"},
      {"mlx5_0:0", "the port of 'mlx5_0:0' is not a number from 1 to 254"},
      {"a,b:1x", "the port of 'b:1x' is not a number from 1 to 254"},
      {"a:1:2", "the port of 'a:1:2' is not a number from 1 to 254"},
  };
  for (const auto& [text, what] : bad) {
    const Result<HcaList> list = HcaList::parse(text);
    ASSERT_FALSE(list.ok()) << text;
    EXPECT_EQ(list.status().code(), StatusCode::InvalidArgument);
    EXPECT_EQ(list.status().message(),
              std::string("RDMACOLL_HCA='") + text + "' is not valid: " + what + form);
  }
}

size_t chosen(const std::vector<Candidate>& candidates, int64_t local_rank) {
  Result<size_t> index = choose_candidate(candidates, local_rank);
  EXPECT_TRUE(index.ok()) << index.status().message();
  return index.ok() ? index.value() : candidates.size();
}

TEST(ChooseCandidate, TakesTheNearestUsableAndSpreadsTheRanks) {
  const std::vector<Candidate> some = {
      {"far", 1, 21, ""}, {"near", 1, 10, "is DOWN"}, {"a", 1, 11, ""}, {"b", 1, 11, ""}};
  EXPECT_EQ(chosen(some, 0), 2u);
  EXPECT_EQ(chosen(some, 1), 3u);
  EXPECT_EQ(chosen(some, 2), 2u);
  EXPECT_EQ(chosen({{"far", 1, 32, ""}, {"middle", 1, 12, ""}, {"farther", 1, 40, ""}}, 5), 1u);
}

TEST(ChooseCandidate, ListsWhatIsWrongWithEach) {
  const Result<size_t> none =
      choose_candidate({{"mlx5_0", 0, 0, "is excluded"}, {"mlx5_1", 2, 10, "is DOWN"}}, 0);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), StatusCode::Unsupported);
  EXPECT_EQ(none.status().message(),
            "no RDMA device of this host can be used: mlx5_0 is excluded; mlx5_1 port 2 is DOWN");
}

TEST(ExplainChoice, SaysWhatSetItApartFromTheOthers) {
  EXPECT_EQ(explain_choice({{"a", 1, 10, ""}}, 0), "the only usable port");
  EXPECT_EQ(explain_choice({{"a", 1, 10, ""}, {"b", 2, 10, "is DOWN"}}, 0),
            "the only usable port; b port 2 is DOWN");
  EXPECT_EQ(explain_choice({{"a", 1, 21, ""}, {"b", 1, 10, ""}}, 1),
            "the nearest port; a port 1 is farther from this process's cores");
  EXPECT_EQ(explain_choice({{"a", 1, 10, ""}, {"b", 1, 10, ""}, {"c", 0, 0, "is excluded"}}, 1),
            "by LOCAL_RANK out of the 2 nearest ports; c is excluded");
}

TEST(PortProblem, NamesStateAndRemedy) {
  ibv_port_attr port{};
  port.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.state = IBV_PORT_ACTIVE;
  EXPECT_EQ(port_problem(port), "");
  port.state = IBV_PORT_DOWN;
  EXPECT_EQ(port_problem(port),
            "is DOWN: bring its network interface up (ip link set <interface> up), or check the "
            "cable");
  port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  EXPECT_EQ(port_problem(port), "is DOWN: check the cable and the switch");
  port.state = IBV_PORT_INIT;
  EXPECT_NE(port_problem(port).find("opensm"), std::string::npos);
  port.state = IBV_PORT_ACTIVE_DEFER;
  EXPECT_EQ(port_problem(port), "is in state 5, not ACTIVE");
}

ibv_gid_entry gid(uint32_t index, const char* address, ibv_gid_type type) {
  ibv_gid_entry entry{};
  entry.gid_index = index;
  entry.gid_type = type;
  EXPECT_EQ(inet_pton(AF_INET6, address, entry.gid.raw), 1) << address;
  return entry;
}

int64_t best(const std::vector<ibv_gid_entry>& gids) {
  Result<ibv_gid_entry> entry = choose_gid(gids, true, -1, "rxe0 port 1");
  EXPECT_TRUE(entry.ok()) << entry.status().message();
  return entry.ok() ? int64_t{entry.value().gid_index} : -1;
}

TEST(ChooseGid, PrefersRoceV2AndIpv4) {
  const ibv_gid_entry v1_local = gid(0, "fe80::1", IBV_GID_TYPE_ROCE_V1);
  const ibv_gid_entry v2_local = gid(1, "fe80::1", IBV_GID_TYPE_ROCE_V2);
  const ibv_gid_entry v1_ipv4 = gid(2, "::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V1);
  const ibv_gid_entry v2_ipv6 = gid(3, "2001:db8::1", IBV_GID_TYPE_ROCE_V2);
  const ibv_gid_entry v2_local_ipv4 = gid(4, "::ffff:169.254.3.1", IBV_GID_TYPE_ROCE_V2);
  const ibv_gid_entry v2_ipv4 = gid(5, "::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V2);
  const ibv_gid_entry other = gid(6, "::ffff:10.0.0.2", IBV_GID_TYPE_ROCE_V2);
  EXPECT_EQ(best({v1_local, v2_local, v1_ipv4, v2_ipv6, v2_local_ipv4, v2_ipv4, other}), 5);
  EXPECT_EQ(best({v1_local, v2_local, v1_ipv4, v2_ipv6, v2_local_ipv4}), 3);
  EXPECT_EQ(best({v1_local, v1_ipv4, v2_local_ipv4}), 4);
  EXPECT_EQ(best({v1_local, v2_local, v1_ipv4}), 1);
  EXPECT_EQ(best({v1_local, v1_ipv4}), 2);
  EXPECT_EQ(best({v1_local}), 0);
}

TEST(ChooseGid, OnInfinibandTakesTheFirst) {
  const ibv_gid_entry first = gid(0, "fe80::1", IBV_GID_TYPE_IB);
  const ibv_gid_entry second = gid(1, "2001:db8::1", IBV_GID_TYPE_IB);
  Result<ibv_gid_entry> entry = choose_gid({first, second}, false, -1, "mlx5_0 port 1");
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry.value().gid_index, 0u);
}

TEST(ChooseGid, TakesTheIndexThatIsWantedOrListsThoseThereAre) {
  const std::vector<ibv_gid_entry> gids = {gid(0, "fe80::1", IBV_GID_TYPE_ROCE_V1),
                                           gid(1, "::ffff:10.0.0.1", IBV_GID_TYPE_ROCE_V2)};
  Result<ibv_gid_entry> entry = choose_gid(gids, true, 0, "rxe0 port 1");
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry.value().gid_index, 0u);
  const Result<ibv_gid_entry> none = choose_gid(gids, true, 3, "rxe0 port 1");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(none.status().message(),
            "RDMACOLL_GID_INDEX=3 does not exist at rxe0 port 1; its GIDs are: 0 = fe80::1 (RoCE "
            "v1), 1 = 10.0.0.1 (RoCE v2); choose one of them or unset it");
  const Result<ibv_gid_entry> nothing = choose_gid({}, true, -1, "rxe0 port 1");
  EXPECT_EQ(nothing.status().code(), StatusCode::Unsupported);
  EXPECT_EQ(nothing.status().message(),
            "rxe0 port 1 has no GID: give its network interface an address (ip addr add)");
}

}  // namespace
}  // namespace rdmacoll::verbs::device_choice_test
