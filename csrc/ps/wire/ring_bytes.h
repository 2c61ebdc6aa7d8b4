// kRingBytes: of each ring between a worker and a server. Floor: ps/wire. Thread: values.
#pragma once

#include <cstdint>

#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

// A few of the longest records, so that one is written while another is read.
inline constexpr uint64_t kRingBytes = 4u << 20;
static_assert(kRingBytes >= 3 * (kLineBytes + padded(kMostBodyBytes)));

}  // namespace rdmacoll::ps
