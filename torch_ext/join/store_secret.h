// The secret of a job that was given none: its ranks draw one in the store where they meet, so that
// they have a key for their greetings. It keeps out only who does not reach that store.
// Floor: torch_ext/join. Thread: the one that makes the group.
#pragma once

#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll::torch_ext {

// The same for all that call it with this store, or with a PrefixStore in it: the first draws.
// Empty for all of them: the first has no libcrypto to sign with.
Result<std::string> secret_of_store(const c10::intrusive_ptr<c10d::Store>& store,
                                    const InterruptCheck& interrupt, Deadline deadline);

}  // namespace rdmacoll::torch_ext
