// CallLog: what a rank has called in a group, kept in its block, where every other rank may read it
// without its help: a rank that fails says what the others were in, whether they wait, compute, are
// stopped or, inside a host, are dead. Writing costs a cache line of this rank's own.
// Floor: engine/failure. Thread: the driver writes; copies are read by the driver of another rank.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/engine/channel/layout.h"
#include "csrc/engine/work/call.h"

namespace rdmacoll {

class CallLog {
 public:
  // `bytes`: kCallLogBytes of zeroed memory, a line's alignment.
  explicit CallLog(std::byte* bytes);

  void begin(const CollectiveCall& call);
  void end(uint64_t sequence);
  // The point-to-point operation that is waited for, one of the oldest; nullopt: none.
  void set_message(const std::optional<MessageCall>& message);
  bool has_message() const { return has_message_; }

 private:
  struct Lines;
  Lines* lines_;
  bool has_message_ = false;
  uint64_t messages_ = 0;  // so far
};

// What was in a rank's log when it was read. What changed meanwhile is left out.
class CallLogView {
 public:
  explicit CallLogView(const std::byte* bytes);

  struct Collective {
    CollectiveCall call;
    bool ended;
  };
  std::optional<Collective> newest() const;
  std::optional<Collective> at(uint64_t sequence) const;
  std::optional<MessageCall> message() const;

 private:
  const std::byte* bytes_;
};

}  // namespace rdmacoll
