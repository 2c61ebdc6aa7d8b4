// RemoteCase: one cell of the fault matrix of remote memory: what happens to whom, in the middle of
// what, over which transport. Floor: tests. Thread: values.
#pragma once

#include <string>
#include <vector>

#include "tests/faults/case.h"

namespace rdmacoll::faults {

// What the reader has of the owner at the time.
enum class RemotePhase {
  Open,       // opens and closes what it exposes
  Read,       // reads it
  Write,      // writes it, and notifies
  Subscribe,  // reads whole versions while they are published
  Revoke,     // reads what the owner revokes
  Idle,       // has it open
};

// By rank. The bystander has memory of both open, and they of it.
enum RemoteRole : int { kOwner, kReader, kBystander, kRemoteRoles };

struct RemoteCase {
  std::string transport;
  Fault fault;
  RemotePhase phase;
  int victim;

  std::string name() const;  // "kill reader in subscribe over shm"
};

const char* remote_phase_name(RemotePhase phase);
std::vector<RemoteCase> all_remote_cases(const std::vector<std::string>& transports);

}  // namespace rdmacoll::faults
