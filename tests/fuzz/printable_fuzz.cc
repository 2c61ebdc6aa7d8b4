// printable() gives whole UTF-8 without control characters, no more of it than was allowed, and
// leaves what it gave as it is.
#include "csrc/base/printable.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  return {"plain",
          "Gr\xc3\xbc\xc3\x9f"
          "e",
          "\033[2J",
          "\xc2\x9b",
          "\xe2\x80\xae",
          "\xf0\x9f\x99\x82"};
}

void run(const std::string& bytes) {
  constexpr size_t kMost = 64;
  const std::string text = printable(bytes, kMost);
  RDMACOLL_CHECK(text.size() <= kMost + 3);
  RDMACOLL_CHECK(printable(text, text.size()) == text);
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    RDMACOLL_CHECK(value >= 0x20 && value != 0x7F);
  }
}

}  // namespace rdmacoll::fuzz
