// Python's part in a wait: nobody waits holding the GIL, and Ctrl-C ends a wait.
// Floor: torch_ext/base. Thread: any; with or without the GIL.
#pragma once

#include <exception>

#include "csrc/base/status.h"

struct _ts;  // PyThreadState; Python.h stays out of the headers

namespace rdmacoll::torch_ext {

// Gives the GIL up for a scope, if this thread holds it. A daemon thread that comes back while
// Python finalizes stays in the scope; with pybind11's own it would end the process.
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
  // For Communicator::wait. Interrupted if a handler raised, then or before: what waits in between
  // for something that it can do without may have passed over it.
  Status check();
  // For what a wait calls in Python: a handler has raised this there. check() says so. With the
  // GIL.
  static void keep(std::exception_ptr raised);
  // In check(), or what was kept.
  bool has_raised();
  [[noreturn]] void rethrow() const { std::rethrow_exception(raised_); }

 private:
  std::exception_ptr raised_;
};

// What waits, without the GIL and with an ear for Ctrl-C, which ends it with what was raised.
// call: takes an InterruptCheck, returns a Status or a Result.
template <typename Call>
auto without_gil(Call call) {
  PythonInterrupt interrupt;
  auto result = [&] {
    const WithoutGil without;
    return call([&interrupt] { return interrupt.check(); });
  }();
  if (interrupt.has_raised()) interrupt.rethrow();
  return result;
}

// Keeps a daemon thread here that comes back from a wait while Python finalizes. It is unwound by
// force, which torch's destructors do not survive.
void stay_if_leaving();

}  // namespace rdmacoll::torch_ext
