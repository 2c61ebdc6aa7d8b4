// ProcessId: names a process for ever; peers are keyed by it, never by a rank.
// Floor: base. Thread: values.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "csrc/base/status.h"

namespace rdmacoll {

using ProcessId = std::array<uint8_t, 16>;

// 128 random bits.
Result<ProcessId> random_process_id();
std::string hex(const ProcessId& id);

}  // namespace rdmacoll
