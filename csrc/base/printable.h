// printable(): makes text of another process safe to show in an error, a log line or a dump. Bytes
// with which it could move the cursor of a terminal, or change what is shown there, are spelled
// out, and its length is bounded.
// Floor: base. Thread: any.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rdmacoll {

inline constexpr size_t kPrintableBytesMax = 2048;

// The text as UTF-8. Each byte of a control character, of a mark of direction and of what is no
// UTF-8 becomes \xNN. A text of more than `most` bytes is cut there and ends in "...".
std::string printable(std::string_view text, size_t most = kPrintableBytesMax);

}  // namespace rdmacoll
