// TaggedFields: named strings of bytes in one, for what every transport has a part in: addresses
// and keys of regions. They come from outside, so parsing trusts nothing. Floor: engine/connect.
// Thread: values.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "csrc/base/status.h"

namespace rdmacoll {

inline constexpr size_t kMaxTaggedFieldsBytes = 4096;  // all of them, as bytes

using TaggedFields = std::map<std::string, std::string, std::less<>>;

std::string encode(const TaggedFields& fields);
// "": there is none of this name.
const std::string& field_of(const TaggedFields& fields, std::string_view name);
// InvalidArgument when encode() of this version did not make the bytes.
Result<TaggedFields> parse_tagged_fields(const std::string& bytes);

}  // namespace rdmacoll
