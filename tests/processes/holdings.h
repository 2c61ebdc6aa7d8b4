// Holdings: what a process holds that must be gone again in the end. Floor: tests. Thread: a value.
#pragma once

#include <dirent.h>

namespace rdmacoll {

inline int entries_of(const char* folder) {
  DIR* directory = opendir(folder);
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

struct Holdings {
  int descriptors = entries_of("/proc/self/fd");
  int threads = entries_of("/proc/self/task");
  bool operator==(const Holdings&) const = default;
};

}  // namespace rdmacoll
