// shm: which processes say that they are of one island. Those that differ in anything that may keep
// them apart must not; what else could keep them apart ends the meeting with an error.
#include <sys/stat.h>

#include <set>

#include "csrc/transport/shm/host_id.h"
#include "tests/contract/shm_pair.h"
#include "tests/user_namespace.h"

namespace rdmacoll::shm_island_test {
namespace {

const UserView kUser{.mine = 1000, .user_namespace = 5};

TEST(ShmIsland, ProcessesOfOneUserOnOneHostAreOfOne) {
  const SteadyClock clock;
  const std::string island = open_shm(clock)->info().island;
  EXPECT_EQ(island, open_shm(clock)->info().island);
  EXPECT_EQ(island.size(), 32u);
  Config elsewhere;
  elsewhere.host_id = "elsewhere";
  EXPECT_NE(island, open_shm(clock, elsewhere)->info().island);
}

TEST(ShmIsland, WhatKeepsProcessesApartMakesAnother) {
  UserView other_user = kUser, other_namespace = kUser;
  other_user.mine = 1001;
  other_namespace.user_namespace = 6;
  const std::set<std::string> islands = {island_of("host", 3, kUser),
                                         island_of("hosts", 3, kUser),
                                         island_of("host", 4, kUser),
                                         island_of("host", 3, other_user),
                                         island_of("", 3, kUser),
                                         island_of("host", 3, other_namespace),
                                         island_of("host\n", 3, kUser),
                                         island_of("host of a longer name", 3, kUser),
                                         island_of("tsoh", 3, kUser),
                                         island_of("host", 5, {.mine = 1000, .user_namespace = 3}),
                                         island_of("other", 3, kUser),
                                         island_of("host", 1000, {.mine = 3, .user_namespace = 5}),
                                         island_of(std::string(kMaxHostIdBytes, 'x'), 3, kUser)};
  EXPECT_EQ(islands.size(), 13u);
  EXPECT_EQ(islands.count(""), 0u);
}

TEST(ShmIsland, WhatTheKernelDoesNotTellMakesNone) {
  EXPECT_EQ(island_of("host", 0, kUser), "");
  EXPECT_EQ(island_of("host", 3, {.mine = 1000, .user_namespace = 0}), "");
}

// It stands for many users, of whom none is met.
TEST(ShmIsland, AUserThatMayBeAnotherIsAlone) {
  UserView nobody = kUser;
  nobody.mine = nobody.overflow;
  EXPECT_EQ(island_of("host", 3, nobody), "");
  nobody.maps_all = true;
  EXPECT_NE(island_of("host", 3, nobody), "");
}

#ifndef __SANITIZE_THREAD__  // it has a thread of its own, and only a single thread may unshare
TEST(ShmIsland, InAUserNamespaceWithoutAMapThereIsNone) {
  expect_in_user_namespace([] { return open_shm(SteadyClock())->info().island.empty(); });
}
#endif

}  // namespace
}  // namespace rdmacoll::shm_island_test
