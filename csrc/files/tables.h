// Tables: what files need of the job's servers. Two compiled modules share it: one has the servers'
// client, the other the mount. So there are virtual functions here, and no symbols.
// Floor: files. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "csrc/base/status.h"
#include "csrc/files/part.h"

namespace rdmacoll::files {

// Floats of a part's table.
struct Wanted {
  Part part;
  uint64_t first = 0;
  std::span<float> into{};
  // What that is in. It is written to also after a read that has failed.
  std::shared_ptr<const void> keeps{};
};

// A part that is being written, also where nobody waits for it.
class Writing {
 public:
  virtual ~Writing() = default;
  // Ok: servers have it, as often as they keep tables.
  virtual Status wait() = 0;
};

// Each wait has a deadline. Timeout, PeerFailed: servers do not answer, or are lost with what they
// had; InvalidArgument: a table was dropped; System: servers have no room.
class Tables {
 public:
  virtual ~Tables() = default;
  virtual Status read(std::span<const Wanted> wanted) = 0;
  // values: of the whole part, which stay as they are until it is written; they are in `keeps`.
  virtual Result<std::shared_ptr<Writing>> write(const Part& part, std::span<const float> values,
                                                 std::shared_ptr<const void> keeps) = 0;
  // Memory that servers of this host read where it is, zeroed.
  virtual Result<std::shared_ptr<std::byte>> lend(uint64_t bytes) = 0;
};

}  // namespace rdmacoll::files
