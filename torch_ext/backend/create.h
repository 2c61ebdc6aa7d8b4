// What makes this process a member of a new group.
// Floor: torch_ext/backend. Thread: the one that makes the group.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "torch_ext/backend/backend.h"

namespace rdmacoll::torch_ext {

// The launcher's agent of this host.
struct Agent {
  std::string address;      // empty: there is none
  bool introduces = false;  // the ranks of this group, which is the whole world, to each other
};

// Joins as `rank` of `size`, under the options' name; `limit` bounds that, by default the options'
// timeout, which then is that of operations. All ranks of the group call it. They meet at the agent
// if it introduces them, else in the store, under keys of this group alone. In both cases the agent
// knows the job's secret; without an agent, or a file with one, the ranks draw one in the store.
std::shared_ptr<Session> join_group(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                    int size, const RdmaBackend::Options& options,
                                    const Agent& agent,
                                    std::optional<RdmaBackend::Milliseconds> limit = {});

// The same as a backend.
c10::intrusive_ptr<RdmaBackend> create_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                               int rank, int size,
                                               c10::intrusive_ptr<RdmaBackend::Options> options,
                                               const Agent& agent);

}  // namespace rdmacoll::torch_ext
