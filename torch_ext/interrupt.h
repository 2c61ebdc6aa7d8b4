// Python's part in a wait: nobody waits holding the GIL, and Ctrl-C ends a wait.
// Floor: torch_ext. Thread: any; with or without the GIL.
#pragma once

#include <cstdint>
#include <exception>

#include "csrc/base/status.h"

struct _ts;  // PyThreadState; Python.h stays out of the headers

namespace rdmacoll::torch_ext {

// Gives the GIL up for a scope, if this thread holds it.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  _ts* saved_;
};

// Runs Python's signal handlers during a wait and carries out what they raise.
class PythonInterrupt {
 public:
  // For Communicator::wait. Interrupted if a handler raised.
  Status check();
  [[noreturn]] void rethrow() const { std::rethrow_exception(raised_); }

 private:
  std::exception_ptr raised_;
};

class InFlight;

// Says, for a scope, that this thread runs callbacks of an operation. Until they have returned the
// operation counts as in flight.
class InCallbacks {
 public:
  explicit InCallbacks(const InFlight& in_flight);  // which counts the operation
  ~InCallbacks();
  InCallbacks(const InCallbacks&) = delete;
  InCallbacks& operator=(const InCallbacks&) = delete;

  // Whether this thread runs any.
  static bool here();
  // Of how many operations that are counted there this thread runs callbacks.
  static int64_t depth_of(const InFlight& in_flight);

 private:
  const InFlight& in_flight_;
  const InCallbacks* const outer_;
};

// A daemon thread that comes back from a wait while Python finalizes is unwound by force, which
// no destructor survives: keeps it here for the little time the process still has.
void stay_if_leaving();

}  // namespace rdmacoll::torch_ext
