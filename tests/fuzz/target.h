// Target: what a fuzz target defines. It aborts where a property does not hold; the sanitizers and
// libFuzzer's limits see to the rest. Floor: tests.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/base/printable.h"
#include "csrc/base/status.h"

namespace rdmacoll::fuzz {

// What real values look like as bytes: where the fuzzer begins.
std::vector<std::string> seeds();
// One hostile input.
void run(const std::string& bytes);

// --- properties ---------------------------------------------------------------------------------

// An error is for people: it says something, not all of a hostile input, and nothing that a
// terminal would obey.
inline void check_error(const Status& status) {
  constexpr size_t kMaxMessageBytes = 4096;
  RDMACOLL_CHECK(!status.ok() && !status.message().empty());
  RDMACOLL_CHECK(status.message().size() <= kMaxMessageBytes);
  RDMACOLL_CHECK(printable(status.message(), kMaxMessageBytes) == status.message());
}

// The bytes of a plain value, as peers write it.
template <typename T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace rdmacoll::fuzz
