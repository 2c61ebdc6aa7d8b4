// Lease: each offer of a region is closed by itself, in whatever order the two are heard.
#include "csrc/transport/lease.h"

#include <gtest/gtest.h>

namespace rdmacoll::lease_test {
namespace {

TEST(Lease, IsHeldUntilWhoItWasOfferedToHasClosedIt) {
  Lease lease{.generation = 5};
  lease.offered(1);
  lease.offered(2);
  lease.closed(1, 5);
  EXPECT_EQ(lease.readers, std::vector<PeerId>{2});
  lease.closed(2, 4);  // of an earlier use of the id
  EXPECT_EQ(lease.readers, std::vector<PeerId>{2});
  lease.closed(2, 5);
  EXPECT_TRUE(lease.readers.empty());
}

TEST(Lease, MayBeClosedBeforeItIsOffered) {
  Lease lease{.generation = 5};
  lease.closed(1, 5);
  lease.closed(1, 5);
  lease.offered(1);
  EXPECT_TRUE(lease.readers.empty());
  lease.offered(1);
  EXPECT_EQ(lease.readers, std::vector<PeerId>{1});
}

// A session ends and another begins before the owner has heard that the first has closed it.
TEST(Lease, WhatWasOfferedAnewIsHeldAfterTheFirstIsClosed) {
  Lease lease{.generation = 5};
  lease.offered(1);
  lease.offered(1);
  lease.closed(1, 5);
  EXPECT_EQ(lease.readers, std::vector<PeerId>{1});
  lease.closed(1, 5);
  EXPECT_TRUE(lease.readers.empty());
}

}  // namespace
}  // namespace rdmacoll::lease_test
