// A process whose transports are fakes, for the tests of what it chooses among them.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "csrc/engine/connect/transports.h"
#include "tests/connect_one.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll {

inline Config with(const std::string& transport, const std::string& require = "") {
  Config config;
  config.transport = transport;
  config.require = require;
  return config;
}

// A process on a host with some of the two transports.
struct Process {
  explicit Process(const std::string& host, bool has_shm = true, bool has_verbs = true,
                   const Config& config = {})
      : transports(having(has_shm, has_verbs), Transports::Host{"id of " + host, host}, config,
                   clock) {}

  Result<Path> connect(const Process& other) {
    return connect_one(transports, other.transports.local_address(),
                       Deadline::after_ms(clock, 10'000), clock);
  }
  Status check_required(const Process& other) const {
    return transports.check_required(other.transports.local_address());
  }
  std::vector<Transport*> having(bool has_shm, bool has_verbs) {
    std::vector<Transport*> list;
    if (has_shm) list.push_back(&shm);
    if (has_verbs) list.push_back(&verbs);
    return list;
  }
  static FakeTransport::Answer fails(StatusCode code, const std::string& why) {
    return [code, why](const std::string&, Deadline) { return Status(code, why); };
  }

  ManualClock clock;
  FakeTransport shm{"shm", "shm address"};
  FakeTransport verbs{"verbs", "verbs address"};
  Transports transports;
};

inline bool says(const Status& status, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (status.message().find(word) == std::string::npos) return false;
  }
  return true;
}

}  // namespace rdmacoll
