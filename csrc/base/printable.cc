// printable(). Floor: base.
#include "csrc/base/printable.h"

#include <cstdint>

namespace rdmacoll {
namespace {

// Decodes the first character; how many bytes it takes, 0 if they are not UTF-8.
size_t decode(std::string_view text, uint32_t* character) {
  // The least character of each length: UTF-8 allows none that would fit into fewer bytes.
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t bytes = first < 0x80       ? 1
                       : first >> 5 == 6  ? 2
                       : first >> 4 == 14 ? 3
                       : first >> 3 == 30 ? 4
                                          : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  uint32_t code = bytes == 1 ? first : first & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if (next >> 6 != 2) return 0;
    code = code << 6 | (next & 0x3F);
  }
  *character = code;
  return code >= kLeast[bytes] ? bytes : 0;
}

// Not control characters, invisible ones, marks of direction, or what is no character.
bool shows(uint32_t c) {
  const auto among = [c](uint32_t first, uint32_t last) { return c >= first && c <= last; };
  return !(c < 0x20 || among(0x7F, 0x9F) || c == 0xAD || c == 0x61C || among(0x200B, 0x200F) ||
           among(0x2028, 0x202E) || among(0x2060, 0x206F) || among(0xD800, 0xDFFF) || c == 0xFEFF ||
           among(0xFFF0, 0xFFFB) || among(0xE0000, 0xE0FFF) || c > 0x10FFFF);
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    uint32_t character = 0;
    const size_t bytes = decode(text, &character);
    std::string next;
    if (bytes > 0 && shows(character)) {
      next = text.substr(0, bytes);
    } else {
      for (const char byte : text.substr(0, bytes > 0 ? bytes : 1)) {
        const auto value = static_cast<unsigned char>(byte);
        next += {'\\', 'x', kDigits[value >> 4], kDigits[value & 15]};
      }
    }
    if (out.size() + next.size() > most) return out + "...";
    out += next;
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return out;
}

}  // namespace rdmacoll
