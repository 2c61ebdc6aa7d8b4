// load_libibverbs(): complete where the machine has the library, and a remedy where it has not.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>

#include "csrc/transport/verbs/device/table.h"

namespace rdmacoll::verbs_table_test {
namespace {

using Words = std::array<uintptr_t, sizeof(VerbsTable) / sizeof(uintptr_t)>;

TEST(VerbsTable, OfTheMachineIsCompleteOrNamesThePackage) {
  const bool has_library = dlopen("libibverbs.so.1", RTLD_NOW) != nullptr;
  Result<VerbsTable> table = load_libibverbs();
  ASSERT_EQ(table.ok(), has_library) << table.status().message();
  if (!has_library) return;
  const auto words = std::bit_cast<Words>(table.value());
  EXPECT_EQ(std::count(words.begin(), words.end(), 0u), 0);
  EXPECT_EQ(table.value().fork_init(), 0);
  int count = -1;
  ibv_device** devices = table.value().get_device_list(&count);
  EXPECT_GE(count, 0);
  if (devices != nullptr) table.value().free_device_list(devices);
}

TEST(VerbsTable, WithoutTheLibraryNamesThePackage) {
  const Result<VerbsTable> table = load_libibverbs("libibverbs.so.0");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), StatusCode::Unsupported);
  EXPECT_EQ(table.status().message(),
            "no libibverbs (libibverbs.so.0: cannot open shared object file: No such file or "
            "directory); install libibverbs1 and ibverbs-providers (Debian, Ubuntu) or libibverbs "
            "(Red Hat, SUSE)");
}

TEST(VerbsTable, OfAnOldLibraryNamesWhatIsMissing) {
  const Result<VerbsTable> table = load_libibverbs("libm.so.6");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), StatusCode::Unsupported);
  EXPECT_EQ(table.status().message(),
            "libm.so.6 is too old: it has no ibv_ack_async_event; rdma-core 32 or newer is needed: "
            "install libibverbs1 and ibverbs-providers (Debian, Ubuntu) or libibverbs (Red Hat, "
            "SUSE)");
}

}  // namespace
}  // namespace rdmacoll::verbs_table_test
