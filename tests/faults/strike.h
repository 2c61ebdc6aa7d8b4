// strike(): the fault of a case, on this process. Floor: tests. Thread: any.
#pragma once

#include <unistd.h>

#include <csignal>

#include "tests/faults/case.h"

namespace rdmacoll::faults {

// One that leaves has to do so itself.
inline void strike(Fault fault) {
  switch (fault) {
    case Fault::Kill:
      raise(SIGKILL);
      break;
    case Fault::Exit:
      _exit(0);
    case Fault::Leave:
      break;
    case Fault::Stop:
      kill(getpid(), SIGSTOP);
      break;
  }
}

}  // namespace rdmacoll::faults
