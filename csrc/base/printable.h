// Text that another process has written, before it becomes part of an error, a log line or a dump:
// what could move a cursor, recolour or rewrite what a terminal shows is spelled out, and there is
// an end to it.
// Floor: base. Thread: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rdmacoll {

inline constexpr size_t kPrintableBytesMax = 2048;

// The text as UTF-8. Control characters, marks of direction and what is no UTF-8 become \xNN, byte
// for byte. What would take more than `most` bytes ends in "...".
std::string printable(std::string_view text, size_t most = kPrintableBytesMax);

}  // namespace rdmacoll
