// The names of all variables that anything of rdmacoll reads, and what is said of others: a name
// with a typo sets nothing, and nobody would notice. docs/ENVIRONMENT.md explains them; a test
// holds it against this list. Floor: engine. Thread: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/settings.h"

namespace rdmacoll {

std::span<const std::string_view> known_settings();

// A line of each setting that is none of ours although its name begins so, with the nearest known
// name if one is near.
std::vector<std::string> about_unknown_settings(const Settings& settings);

}  // namespace rdmacoll
