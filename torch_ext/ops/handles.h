// Handles: numbers that name live groups, for operators, whose schemas take no objects. A number
// names one group, for ever; it keeps nobody alive.
// Floor: torch_ext/ops. Thread: any.
#pragma once

#include <cstdint>

#include "torch_ext/backend/backend.h"

namespace rdmacoll::torch_ext {

using BackendRef = c10::intrusive_ptr<RdmaBackend>;

// The same at each call. Positive; another one in each process, perhaps.
int64_t handle_of(const BackendRef& backend);

// Throws if it never named a group, or no longer does. `operation` is a literal, for the message.
BackendRef group_of(const char* operation, int64_t handle);

}  // namespace rdmacoll::torch_ext
