// Remote memory over verbs: the device is emulated, the rest is real.
#include "csrc/transport/verbs/transport.h"
#include "tests/fake_verbs/network.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll {
namespace {

std::shared_ptr<void> two_devices() {
  fake::NetworkSpec spec;
  spec.seed = 1;
  spec.devices = {fake::roce_device(0), fake::roce_device(1)};
  return std::make_shared<fake::FakeNetwork>(spec);
}

OwnedTransports verbs(const Clock& clock) {
  Config config;
  config.log_level = LogLevel::Error;
  return only(
      VerbsTransport::open(fake::FakeNetwork::table(), config, clock, ThisProcess::make().take()));
}

INSTANTIATE_TEST_SUITE_P(Verbs, RemoteTest,
                         testing::Values(RemoteKind{"verbs", false, verbs, two_devices}), name_of);

}  // namespace
}  // namespace rdmacoll
