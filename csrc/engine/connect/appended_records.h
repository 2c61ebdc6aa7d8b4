// AppendedRecords: what each rank of a group says in one exchange, one behind the other in one
// string of bytes, in the order in which they came. It comes from a store, so parsing trusts
// nothing. Floor: engine/connect. Thread: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace rdmacoll {

// What one rank appends.
std::string appended_record(uint32_t rank, const std::string& says);
// By rank; nothing of those that have not come. InvalidArgument: ranks of a world of this size that
// each append once do not leave these bytes.
Result<std::vector<std::optional<std::string>>> parse_appended(const std::string& bytes,
                                                               uint32_t world);

}  // namespace rdmacoll
