// Workers and servers over verbs: the device is emulated, the rest is real.
#include "tests/unit/ps/rings.h"
#include "tests/unit/remote/over_fake_verbs.h"

namespace rdmacoll::ps::verbs_rings_test {
namespace {

INSTANTIATE_TEST_SUITE_P(Verbs, Rings, testing::Values(over_fake_verbs()), name_of);

}  // namespace
}  // namespace rdmacoll::ps::verbs_rings_test
