// libFuzzer's side of a target. With --write_seeds=FOLDER it writes the seeds there and ends.
#include "tests/fuzz/target.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace {

constexpr std::string_view kWriteSeeds = "--write_seeds=";

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (!argument.starts_with(kWriteSeeds)) continue;
    const std::string folder(argument.substr(kWriteSeeds.size()));
    int number = 0;
    for (const std::string& seed : rdmacoll::fuzz::seeds()) {
      std::ofstream file(folder + "/seed" + std::to_string(number++), std::ios::binary);
      file << seed;
      RDMACOLL_CHECK(file.good());
    }
    std::exit(EXIT_SUCCESS);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  rdmacoll::fuzz::run(std::string(reinterpret_cast<const char*>(data), bytes));
  return 0;
}
