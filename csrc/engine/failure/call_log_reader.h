// CallLogReader: reads one-sidedly what the ranks of a group have called (call_log.h): when the
// group fails, to put it into words, and when this rank waits for long, to compare. Nobody has to
// answer; where a network lies between, it takes a moment. Floor: engine/failure. Thread: the
// driver.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/engine/channel/layout.h"
#include "csrc/engine/channel/port.h"
#include "csrc/engine/failure/call_log.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

class CallLogReader {
 public:
  CallLogReader(const Layout& layout, uint32_t rank, const Region& block,
                const std::vector<Link>& links);

  // Asks for as many of the ranks as there is room for, the first of them.
  void begin(const std::vector<uint32_t>& ranks);
  // Whether nothing is under way any more. Posts what the transports had no room for.
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
  enum class State : uint8_t { Unasked, Unposted, Pending, Read };
  struct Asked {
    State state = State::Unasked;
    uint32_t place = 0;
    Ticket ticket;
  };
  void post(uint32_t rank, Asked& asked);
  CallLogView log_of(uint32_t rank) const;

  const Layout& layout_;
  const uint32_t rank_;
  const Region& block_;
  const std::vector<Link>& links_;
  std::vector<Asked> asked_;
};

}  // namespace rdmacoll
