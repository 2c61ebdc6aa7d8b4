// The GIL and Python's signals. Floor: torch_ext/base.
#include "torch_ext/base/interrupt.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <utility>

#include "torch_ext/base/in_flight.h"
#include "torch_ext/base/process_life.h"

namespace rdmacoll::torch_ext {
namespace {

std::exception_ptr kept;  // the main thread's: handlers run there

// For the little time that the process still has.
[[noreturn]] void stay() {
  for (;;) pause();
}

}  // namespace

// Also entered when Python is gone: a group may outlive it.
WithoutGil::WithoutGil()
    : saved_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}

WithoutGil::~WithoutGil() {
  if (saved_ == nullptr) return;
  try {
    PyEval_RestoreThread(saved_);
  } catch (...) {
    stay();  // Python finalizes, and unwinds a daemon thread by force
  }
}

Status PythonInterrupt::check() {
  // Python runs handlers in the main thread only, and while it finalizes, no other may ask for the
  // GIL.
  if (gettid() != getpid() || !Py_IsInitialized()) return Status();
  if (!has_raised()) {
    const pybind11::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) return Status();
    raised_ = std::make_exception_ptr(pybind11::error_already_set());
  }
  return Status(StatusCode::Interrupted, "a signal handler raised an exception");
}

void PythonInterrupt::keep(std::exception_ptr raised) { kept = std::move(raised); }

bool PythonInterrupt::has_raised() {
  if (gettid() == getpid() && kept != nullptr) raised_ = std::exchange(kept, nullptr);
  return raised_ != nullptr;
}

void stay_if_leaving() {
  if (!ProcessLife::instance().leaving() || InCallbacks::here() || gettid() == getpid()) return;
  stay();
}

}  // namespace rdmacoll::torch_ext
