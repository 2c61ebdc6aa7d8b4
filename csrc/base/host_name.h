// What this machine calls itself, for people. Floor: base. Thread: any.
#pragma once

#include <string>

namespace rdmacoll {

std::string host_name();  // "unknown" when the system does not tell

}  // namespace rdmacoll
