// A planned group: one that nobody has made, of ranks on hosts that only its shape names. It says
// what such a group would take, move and do; `rdmacoll plan` shows it.
// Floor: torch_ext. Thread: with the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "csrc/plan/plan.h"

namespace rdmacoll::torch_ext {

// ValueError says which there are.
Collective collective_named(const std::string& name);

void bind_planned_group(pybind11::module_& module);

}  // namespace rdmacoll::torch_ext
