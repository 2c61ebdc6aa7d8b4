// Sequencer: what rank 0 of a group does for operations that ranks submit by name, each in an order
// of its own. It puts them into one order, that of all ranks, as soon as all have submitted them,
// and compares what they have submitted before anything moves.
//
// No clock, no thread and no transport: messages go in and come out. There is one answer for all
// ranks, this one among them, and it is taken by all in the order in which it was made.
// Floor: order. Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/bytes.h"
#include "csrc/base/status.h"
#include "csrc/order/messages.h"

namespace rdmacoll {

class Sequencer {
 public:
  explicit Sequencer(uint32_t ranks);
  Sequencer(const Sequencer&) = delete;
  Sequencer& operator=(const Sequencer&) = delete;

  // What a rank says, in the order in which it said it. InvalidArgument: no rank of this version
  // says that, and the group can no longer be used.
  Status take(uint32_t rank, std::span<const std::byte> message);
  // What has been decided since the last time, for all ranks; empty: nothing.
  Bytes decisions();

 private:
  // All that is known of one name.
  struct Name {
    std::string name;
    uint32_t slot = kNoSlot;
    std::vector<NamedRequestPtr> submitted;  // by rank; nullptr: it has not, since it last ran
    std::vector<NamedRequestPtr> last;       // by rank, likewise: what its bit stands for
    uint32_t count = 0;                      // of what is submitted
    bool has_changed = true;  // since all ranks were told what they have agreed about
  };

  Status submit(uint32_t rank, NamedRequest request);
  Status submit_known(uint32_t rank, const SlotSet& slots);
  Status join(uint32_t rank);
  void answer(uint32_t rank);
  void add(uint32_t rank, Name& name, NamedRequestPtr request);
  bool is_complete(const Name& name) const;
  void decide(Name& name);
  Status check(const Name& name) const;
  void tell(Name& name);
  void refuse(Name& name, const Status& why);
  void end_join();
  bool lacks_none_but_joined(const std::vector<NamedRequestPtr>& by_rank) const;

  const uint32_t ranks_;
  std::map<std::string, std::unique_ptr<Name>> names_;
  std::vector<Name*> slots_;
  std::vector<bool> joined_;
  uint32_t joined_count_ = 0;
  uint32_t last_joined_ = 0;
  SlotSet run_;  // these first
  Bytes other_;  // then these, as they were decided
};

}  // namespace rdmacoll
