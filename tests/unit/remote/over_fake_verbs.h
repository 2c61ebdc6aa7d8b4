// over_fake_verbs(): processes that reach each other over verbs, on an emulated device.
// Floor: tests. Thread: any.
#pragma once

#include <memory>

#include "csrc/transport/verbs/transport.h"
#include "tests/fake_verbs/network.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll {

inline RemoteKind over_fake_verbs() {
  const auto two_devices = []() -> std::shared_ptr<void> {
    fake::NetworkSpec spec;
    spec.seed = 1;
    spec.devices = {fake::roce_device(0), fake::roce_device(1)};
    return std::make_shared<fake::FakeNetwork>(spec);
  };
  const auto open = [](const Clock& clock) {
    Config config;
    config.log_level = LogLevel::Error;
    return only(VerbsTransport::open(fake::FakeNetwork::table(), config, clock,
                                     ThisProcess::make().take()));
  };
  return {"verbs", false, open, two_devices};
}

}  // namespace rdmacoll
