// TaggedFields as bytes: of each the sizes of name and text in 16 bits, in the byte order of all
// hosts that run rdmacoll (little), then both. Floor: engine/connect.
#include "csrc/engine/connect/tagged_fields.h"

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

const std::string& field_of(const TaggedFields& fields, std::string_view name) {
  static const std::string none;
  const auto found = fields.find(name);
  return found == fields.end() ? none : found->second;
}

std::string encode(const TaggedFields& fields) {
  std::string bytes;
  for (const auto& [name, text] : fields) {
    RDMACOLL_CHECK(!name.empty() && name.size() + text.size() < kMaxTaggedFieldsBytes);
    const Sizes sizes{static_cast<uint16_t>(name.size()), static_cast<uint16_t>(text.size())};
    bytes.append(reinterpret_cast<const char*>(&sizes), sizeof sizes);
    bytes += name;
    bytes += text;
  }
  RDMACOLL_CHECK(bytes.size() <= kMaxTaggedFieldsBytes);
  return bytes;
}

Result<TaggedFields> parse_tagged_fields(const std::string& bytes) {
  TaggedFields fields;
  bool good = bytes.size() <= kMaxTaggedFieldsBytes;
  for (size_t at = 0; good && at < bytes.size();) {
    Sizes sizes{};
    good = bytes.size() - at >= sizeof sizes;
    if (!good) break;
    std::memcpy(&sizes, bytes.data() + at, sizeof sizes);
    at += sizeof sizes;
    good = sizes.name > 0 && bytes.size() - at >= size_t{sizes.name} + sizes.text;
    if (!good) break;
    good = fields.emplace(bytes.substr(at, sizes.name), bytes.substr(at + sizes.name, sizes.text))
               .second;
    at += size_t{sizes.name} + sizes.text;
  }
  if (good) return fields;
  return Status(StatusCode::InvalidArgument, std::to_string(bytes.size()) +
                                                 " bytes that name a process or its memory are not "
                                                 "what this version of rdmacoll writes; run the "
                                                 "same version on all ranks");
}

}  // namespace rdmacoll
