// extent_name: under which a server exposes memory of a table. Floor: ps/wire. Thread: any.
#pragma once

#include <cstdint>
#include <string>

namespace rdmacoll::ps {

inline std::string extent_name(uint32_t table, uint64_t number) {
  return "rdmacoll.ps.table." + std::to_string(table) + "." + std::to_string(number);
}

}  // namespace rdmacoll::ps
