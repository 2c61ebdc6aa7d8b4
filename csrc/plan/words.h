// Words of what people write about plans: tuned tables (choice/tuning.h), shapes (islands.h). They
// may be any bytes. Floor: plan. Thread: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"

namespace rdmacoll {

std::vector<std::string_view> split_words(std::string_view row);
// nullopt: it is not digits alone, or more than 64 bits hold.
std::optional<uint64_t> whole_number(std::string_view digits);
// What follows `name` in the word, if it begins so.
std::optional<std::string_view> value_of(std::string_view name, std::string_view word);
// For errors, which are read as text.
std::string quoted(std::string_view word);
inline Status wrong(const std::string& what) { return Status(StatusCode::InvalidArgument, what); }

}  // namespace rdmacoll
