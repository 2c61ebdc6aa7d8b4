// The GIL and Python's signals. Floor: torch_ext.
#include "torch_ext/interrupt.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "torch_ext/process.h"

namespace rdmacoll::torch_ext {
namespace {

thread_local const InCallbacks* innermost = nullptr;

}  // namespace

// Also entered when Python is gone: a group may outlive it.
WithoutGil::WithoutGil()
    : saved_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}

WithoutGil::~WithoutGil() {
  if (saved_ != nullptr) PyEval_RestoreThread(saved_);
}

Status PythonInterrupt::check() {
  // Python runs handlers in the main thread only, and while it finalizes, no other may ask for the
  // GIL.
  if (gettid() != getpid() || !Py_IsInitialized()) return Status();
  const pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return Status();
  raised_ = std::make_exception_ptr(pybind11::error_already_set());
  return Status(StatusCode::Interrupted, "a signal handler raised an exception");
}

InCallbacks::InCallbacks(const InFlight& in_flight)
    : in_flight_(in_flight), outer_(std::exchange(innermost, this)) {}
InCallbacks::~InCallbacks() { innermost = outer_; }

bool InCallbacks::here() { return innermost != nullptr; }

int64_t InCallbacks::depth_of(const InFlight& in_flight) {
  int64_t depth = 0;
  for (const InCallbacks* at = innermost; at != nullptr; at = at->outer_) {
    depth += &at->in_flight_ == &in_flight ? 1 : 0;
  }
  return depth;
}

void stay_if_leaving() {
  if (!Process::instance().leaving() || InCallbacks::here() || gettid() == getpid()) return;
  for (;;) pause();
}

}  // namespace rdmacoll::torch_ext
