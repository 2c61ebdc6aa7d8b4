// Whether a process belongs to this user. An id that may stand for many users counts as another's.
#include "csrc/base/same_user.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/user_namespace.h"

namespace rdmacoll::same_user_test {
namespace {

constexpr uid_t kOverflow = 65534;

TEST(SameUser, OnesOwnAndNoOther) {
  const UserView view{.mine = 1000, .overflow = kOverflow, .maps_all = true};
  EXPECT_TRUE(view.same(1000));
  EXPECT_FALSE(view.same(1001));
  EXPECT_FALSE(view.same(0));
  EXPECT_TRUE(same_user(::geteuid()));
  EXPECT_FALSE(same_user(::geteuid() + 1));
}

// Where all ids are mapped, "nobody" is a user like any other.
TEST(SameUser, TheOverflowIdIsAUserOnlyWhereAllAreMapped) {
  UserView view{.mine = kOverflow, .overflow = kOverflow, .maps_all = true};
  EXPECT_TRUE(view.same(kOverflow));
  view.maps_all = false;
  EXPECT_FALSE(view.same(kOverflow));
  view.mine = 1000;
  EXPECT_TRUE(view.same(1000));
  EXPECT_FALSE(view.same(kOverflow));
}

TEST(SameUser, OnlyTheFirstNamespaceMapsAll) {
  EXPECT_TRUE(UserView::is_identity("         0          0 4294967295\n"));
  for (const char* map : {"", "\n", "0 1000 1\n", "0 0 65536\n", "1 1 4294967294\n", "0 0 x"}) {
    EXPECT_FALSE(UserView::is_identity(map)) << map;
  }
}

TEST(SameUser, TheUserNamespaceHasANumber) { EXPECT_NE(UserView::now().user_namespace, 0u); }

#ifndef __SANITIZE_THREAD__  // it has a thread of its own, and only a single thread may unshare
TEST(SameUser, HasAnotherNumberInAUserNamespace) {
  const uint64_t outside = UserView::now().user_namespace;
  expect_in_user_namespace([&] {
    const uint64_t inside = UserView::now().user_namespace;
    return inside != 0 && inside != outside;
  });
}

// In a namespace that maps no user, every process seems to belong to this one.
TEST(SameUser, InAUserNamespaceWithoutAMapNobodyIsTheSame) {
  expect_in_user_namespace([] {
    const bool named = user_text(::geteuid()).find("user namespace") != std::string::npos;
    return !same_user(::geteuid()) && named;
  });
}
#endif

}  // namespace
}  // namespace rdmacoll::same_user_test
