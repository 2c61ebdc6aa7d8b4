// CallLogReader: reads one-sidedly what the ranks of a group have called (call_log.h): when the
// group fails, to put it into words, and when this rank waits for long, to compare.
// Floor: engine/failure. Thread: the driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/engine/failure/call_log.h"
#include "csrc/engine/failure/peer_reads.h"

namespace rdmacoll {

class CallLogReader {
 public:
  explicit CallLogReader(const PeerLinks& links);

  // Asks for as many of the ranks as there is room for, the first of them. One that is not met is
  // read once it is.
  void begin(const std::vector<uint32_t>& ranks);
  // Whether all of them are read. Posts what there was no room for.
  bool done();

  // A rank whose log was read and whose collective of the same number is another one than `mine`.
  std::optional<uint32_t> differing(const CollectiveCall& mine) const;
  // The number of the collective that not all have ended, as far as is known: where they part.
  uint64_t first_open() const;
  // What the rank is in, and what it had called as first_open() and as this rank's own collective,
  // of that number, if it has gone on since. "": it has called nothing yet. For this rank, too.
  std::string finding(uint32_t rank, uint64_t own_sequence) const;
  // How long it has been in that, by the hosts' times of day; 0: it is in nothing.
  int64_t waited_ns(uint32_t rank, int64_t now_ns) const;

 private:
  struct Log {
    std::optional<uint32_t> rank{};    // nullopt: nobody was asked
    const std::byte* bytes = nullptr;  // nullptr: not read so far
  };
  const Log* log_of(uint32_t rank) const;

  const bool one_each_;  // there is a place for every rank
  PeerReads reads_;
  std::vector<Log> logs_;  // by place, and last this rank's own
};

}  // namespace rdmacoll
