// How errors name a rank. Floor: engine/work. Thread: any.
#pragma once

#include <cstdint>
#include <string>

namespace rdmacoll {

inline std::string who(uint32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace rdmacoll
