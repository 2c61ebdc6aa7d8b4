// FailureReport: what the ranks of a group were in when it failed, in words: a line for all that
// were in the same. Floor: engine/failure. Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rdmacoll {

class FailureReport {
 public:
  // waited_ns: so long it has been in that; 0: not known.
  void add(uint32_t rank, const std::string& what, int64_t waited_ns = 0);
  // "\n  rank 0, 2: in ..., for 3.0 s" for each.
  std::string text() const;

 private:
  struct Entry {
    std::string what;
    int64_t waited_ns;  // the longest
    std::vector<uint32_t> ranks;
  };
  std::vector<Entry> entries_;
};

}  // namespace rdmacoll
