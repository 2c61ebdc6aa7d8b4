// RemoteCase. Floor: tests.
#include "tests/faults/remote/remote_case.h"

namespace rdmacoll::faults {

const char* remote_phase_name(RemotePhase phase) {
  switch (phase) {
    case RemotePhase::Open:
      return "open";
    case RemotePhase::Read:
      return "read";
    case RemotePhase::Write:
      return "write";
    case RemotePhase::Subscribe:
      return "subscribe";
    case RemotePhase::Revoke:
      return "revoke";
    case RemotePhase::Idle:
      return "idle";
  }
  return "?";
}

std::string RemoteCase::name() const {
  return std::string(fault_name(fault)) + (victim == kOwner ? " owner in " : " reader in ") +
         remote_phase_name(phase) + " over " + transport;
}

// Phases are innermost, so that every part has of all faults.
std::vector<RemoteCase> all_remote_cases(const std::vector<std::string>& transports) {
  std::vector<RemoteCase> cases;
  for (const std::string& transport : transports) {
    for (const int victim : {kOwner, kReader}) {
      for (const Fault fault : {Fault::Kill, Fault::Exit, Fault::Leave, Fault::Stop}) {
        for (const RemotePhase phase :
             {RemotePhase::Open, RemotePhase::Read, RemotePhase::Write, RemotePhase::Subscribe,
              RemotePhase::Revoke, RemotePhase::Idle}) {
          cases.push_back({transport, fault, phase, victim});
        }
      }
    }
  }
  return cases;
}

}  // namespace rdmacoll::faults
