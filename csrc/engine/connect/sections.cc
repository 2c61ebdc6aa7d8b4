// Sections as bytes: of each the sizes of name and text in 16 bits, in the byte order of all hosts
// that run rdmacoll (little), then both. Floor: engine/connect.
#include "csrc/engine/connect/sections.h"

#include <cstdint>
#include <cstring>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

struct Sizes {
  uint16_t name;
  uint16_t text;
};

}  // namespace

std::string encode(const Sections& sections) {
  std::string bytes;
  for (const auto& [name, text] : sections) {
    RDMACOLL_CHECK(!name.empty() && name.size() + text.size() < kMaxSectionsBytes);
    const Sizes sizes{static_cast<uint16_t>(name.size()), static_cast<uint16_t>(text.size())};
    bytes.append(reinterpret_cast<const char*>(&sizes), sizeof sizes);
    bytes += name;
    bytes += text;
  }
  RDMACOLL_CHECK(bytes.size() <= kMaxSectionsBytes);
  return bytes;
}

Result<Sections> parse_sections(const std::string& bytes) {
  Sections sections;
  bool good = bytes.size() <= kMaxSectionsBytes;
  for (size_t at = 0; good && at < bytes.size();) {
    Sizes sizes{};
    good = bytes.size() - at >= sizeof sizes;
    if (!good) break;
    std::memcpy(&sizes, bytes.data() + at, sizeof sizes);
    at += sizeof sizes;
    good = sizes.name > 0 && bytes.size() - at >= size_t{sizes.name} + sizes.text;
    if (!good) break;
    good = sections.emplace(bytes.substr(at, sizes.name), bytes.substr(at + sizes.name, sizes.text))
               .second;
    at += size_t{sizes.name} + sizes.text;
  }
  if (good) return sections;
  return Status(StatusCode::InvalidArgument, std::to_string(bytes.size()) +
                                                 " bytes that name a process or its memory are not "
                                                 "what this version of rdmacoll writes; run the "
                                                 "same version on all ranks");
}

}  // namespace rdmacoll
