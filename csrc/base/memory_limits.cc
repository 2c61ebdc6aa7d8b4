// MemoryLimits: from getrlimit, /proc and the cgroup's files. Floor: base.
#include "csrc/base/memory_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace rdmacoll {
namespace {

// There is no limit where the file is missing or says "max", or where it holds the huge number by
// which version 1 says so.
uint64_t limit_in(const std::string& file) {
  std::ifstream stream(file);
  uint64_t bytes = 0;
  if (!(stream >> bytes) || bytes > uint64_t{1} << 60) return MemoryLimits::kNone;
  return bytes;
}

// The least limit of the group at this path and of all groups above it. In a container the path may
// be the host's, of which only the top can be seen.
uint64_t least_limit(const std::string& folder, std::string path, const std::string& file) {
  uint64_t least = limit_in(folder + "/" + file);
  while (path.size() > 1) {
    least = std::min(least, limit_in(folder + path + "/" + file));
    path.erase(path.rfind('/'));
  }
  return least;
}

uint64_t mapped_now(uint64_t page_bytes) {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  return pages * page_bytes;
}

}  // namespace

uint64_t MemoryLimits::cgroup_limit(const std::string& root) {
  uint64_t least = kNone;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    const std::string top = root + "/sys/fs/cgroup";
    if (controllers == ",,") {  // version 2
      least = std::min(least, least_limit(top, path, "memory.max"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, least_limit(top + "/memory", path, "memory.limit_in_bytes"));
    }
  }
  return least;
}

MemoryLimits MemoryLimits::of_this_process() {
  MemoryLimits limits;
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  if (pages > 0) limits.physical_bytes = static_cast<uint64_t>(pages) * page_bytes;
  limits.cgroup_bytes = cgroup_limit("");
  rlimit address{};
  if (::getrlimit(RLIMIT_AS, &address) == 0 && address.rlim_cur != RLIM_INFINITY) {
    limits.address_bytes = address.rlim_cur;
  }
  limits.mapped_bytes = mapped_now(page_bytes);
  return limits;
}

}  // namespace rdmacoll
