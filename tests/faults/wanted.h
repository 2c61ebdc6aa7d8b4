// Wanted: which cases of a matrix are run, as the command line says it. Floor: tests.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace rdmacoll::faults {

struct Wanted {
  size_t part = 0, parts = 1;
  std::string only;
  uint64_t seed = 1;

  static constexpr const char* kUsage = "[--part K/N] [--only WORDS] [--seed S]";
  // False: it makes no sense.
  bool parse(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::string option = argv[i];
      const char* value = argv[i + 1];
      if (option == "--part") {
        const char* slash = std::strchr(value, '/');
        part = std::strtoull(value, nullptr, 10);
        parts = slash == nullptr ? 0 : std::strtoull(slash + 1, nullptr, 10);
      } else if (option == "--only") {
        only = value;
      } else if (option == "--seed") {
        seed = std::strtoull(value, nullptr, 10);
      } else {
        return false;
      }
    }
    return argc % 2 == 1 && parts > 0 && part < parts;
  }
  // The case of this number and name.
  bool takes(size_t number, const std::string& name) const {
    return number % parts == part && name.find(only) != std::string::npos;
  }
};

}  // namespace rdmacoll::faults
