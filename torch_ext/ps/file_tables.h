// file_tables: this process as a worker, as files see it (csrc/files/tables.h).
// Floor: torch_ext/ps. Thread: any, without the GIL.
#pragma once

#include <memory>

#include "csrc/files/tables.h"
#include "torch_ext/ps/ps_face.h"

namespace rdmacoll::torch_ext {

// timeout_s: of each wait. interrupt: what it looks at in each; nullptr: nothing ends one.
std::shared_ptr<files::Tables> file_tables(PsClientPtr client, double timeout_s,
                                           const InterruptCheck* interrupt = nullptr);

}  // namespace rdmacoll::torch_ext
