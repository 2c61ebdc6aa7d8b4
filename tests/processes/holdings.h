// Holdings: what a process holds that must be gone again in the end. Floor: tests. Thread: a value.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <string>

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

// What is held more or less than before; "": nothing. A thread that was joined is listed until the
// kernel has let go of it, which takes a while where processors are scarce.
inline std::string not_as(const Holdings& before) {
  constexpr int kTries = 1000;
  constexpr useconds_t kPauseUs = 1000;
  Holdings now;
  for (int i = 0; i < kTries && now != before; ++i) {
    usleep(kPauseUs);
    now = Holdings();
  }
  if (now == before) return "";
  const auto of = [](const char* what, int is, int was) {
    return std::to_string(is) + " " + what + ", " + std::to_string(was) + " before";
  };
  return of("descriptors", now.descriptors, before.descriptors) + "; " +
         of("threads", now.threads, before.threads);
}

}  // namespace rdmacoll
