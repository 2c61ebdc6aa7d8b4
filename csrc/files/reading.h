// Reading: bytes of a version of a file. Floor: files. Thread: any.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/files/tables.h"

namespace rdmacoll::files {

// What may be written before and behind the bytes that are wanted: tables are read by whole floats.
inline constexpr size_t kSlack = sizeof(float) - 1;

// The bytes from `first` on, which all are there. out: aligned as `first` is, or the bytes are
// copied once more; kSlack bytes on both sides of it may be written. keeps: what it is in; who
// reads in vain has no other use for it, as it may be written to later.
Status read(Tables& tables, const Parts& parts, uint64_t first, std::span<std::byte> out,
            const std::shared_ptr<const void>& keeps);

}  // namespace rdmacoll::files
