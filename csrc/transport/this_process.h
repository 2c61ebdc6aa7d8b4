// ThisProcess: what the transports of a process have in common.
// Floor: transport. Thread: a value.
#pragma once

#include <memory>

#include "csrc/base/process_id.h"
#include "csrc/base/status.h"
#include "csrc/memory/alarm_fd.h"

namespace rdmacoll {

struct ThisProcess {
  ProcessId id{};                    // by which peers know it, over all of them
  std::shared_ptr<AlarmFd> alarm{};  // wakes who serves their set-up (SetUpNews)

  static Result<ThisProcess> make() {
    Result<ProcessId> id = random_process_id();
    if (!id.ok()) return id.status();
    Result<std::shared_ptr<AlarmFd>> alarm = AlarmFd::create();
    if (!alarm.ok()) return alarm.status();
    return ThisProcess{id.value(), alarm.take()};
  }
};

}  // namespace rdmacoll
