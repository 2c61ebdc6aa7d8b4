// create_backend: makes this process a member of a new group.
// Floor: torch_ext. Thread: the one that makes the group.
#pragma once

#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "torch_ext/backend.h"

namespace rdmacoll::torch_ext {

// All ranks of the group call it. They meet at the launcher's agent if its address is given (the
// group is then the whole world), else in the store, under keys of this group alone.
c10::intrusive_ptr<RdmaBackend> create_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                               int rank, int size,
                                               c10::intrusive_ptr<RdmaBackend::Options> options,
                                               const std::string& agent_address);

}  // namespace rdmacoll::torch_ext
