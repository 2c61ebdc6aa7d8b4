// What the ranks of a group must have set alike. Floor: engine/connect. Thread: a pure function.
#pragma once

#include <cstdint>

#include "csrc/base/config.h"

namespace rdmacoll {

// Hash of it, of the engine's settings and of all transports'. They must be valid.
uint64_t agreement_hash(const Config& config);

}  // namespace rdmacoll
