// is_stopped(): whether a process has been stopped by a signal: one that says that it is to be may
// go on for a while, where processors are few. Floor: tests. Thread: any.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <iterator>
#include <string>

namespace rdmacoll {

inline bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t name_end = stat.rfind(')');  // its name may have any signs in it
  return name_end != std::string::npos && stat.substr(name_end, 3) == ") T";
}

}  // namespace rdmacoll
