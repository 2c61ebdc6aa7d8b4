// Submitter: what every rank of a group does for operations that it submits by name: it says them
// to the sequencer, in as few bytes as may be, and takes from it what is to run, in the order of
// all ranks. Neither clock, nor thread, nor transport. Floor: order. Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/bytes.h"
#include "csrc/base/status.h"
#include "csrc/order/agreed.h"
#include "csrc/order/messages.h"

namespace rdmacoll {

// What the sequencer has decided, as it matters to this rank.
struct Decision {
  enum class What : uint8_t { Run, Refused, JoinEnded, Late };
  What what{};
  std::string name{};  // of what runs and what is refused
  // Whether this rank has submitted it. Else it has joined, and takes part all the same.
  bool is_own = false;
  AgreedPtr agreed{};        // of what runs
  Status why{};              // of what is refused
  uint32_t last_joined = 0;  // of a join that has ended: the rank that came last
  Late late{};               // an answer to ask()
};

class Submitter {
 public:
  Submitter() = default;
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;

  // What is to be said to the sequencer comes behind what is in `message`. InvalidArgument: the
  // name is in flight on this rank, or this rank has joined.
  Status submit(const NamedRequest& request, Bytes& message);
  // No rank waits for this one any more, until all have joined.
  Status join(Bytes& message);
  // Who is late? The answer goes to all ranks.
  static void ask(Bytes& message) { ByteWriter(message).put(ToSequencer::Ask); }
  // What the sequencer says, in the order in which it said it. InvalidArgument: see Sequencer.
  Status take(std::span<const std::byte> message, std::vector<Decision>& decisions);
  // What was decided of this name has ended: it may be submitted again.
  void end(const std::string& name) { in_flight_.erase(name); }

 private:
  // A name that all ranks have agreed about.
  struct Known {
    uint32_t slot = 0;
    AgreedPtr agreed;
    std::optional<NamedRequest> own;  // what this rank's bit stands for
  };
  struct InFlight {
    NamedRequest request;
    bool is_decided = false;
  };

  Status decided(ByteReader& reader, std::vector<Decision>& decisions);
  Status run(ByteReader& reader, std::vector<Decision>& decisions);
  Status refused(ByteReader& reader, std::vector<Decision>& decisions);
  Status join_ended(ByteReader& reader, std::vector<Decision>& decisions);
  Status late(ByteReader& reader, std::vector<Decision>& decisions);
  Result<bool> is_own(const std::string& name);

  std::map<std::string, Known> known_;
  std::vector<std::string> names_;  // by slot
  std::map<std::string, InFlight> in_flight_;
  bool has_joined_ = false;
};

}  // namespace rdmacoll
