// Remote memory over verbs: the device is emulated, the rest is real.
#include "tests/unit/remote/over_fake_verbs.h"

namespace rdmacoll::verbs_remote_test {
namespace {

INSTANTIATE_TEST_SUITE_P(Verbs, RemoteTest, testing::Values(over_fake_verbs()), name_of);

}  // namespace
}  // namespace rdmacoll::verbs_remote_test
