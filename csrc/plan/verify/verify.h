// verify(): proves that plans are right, by running a whole world of them on symbols.
// Floor: plan (used by tests and tools; the engine does not need it). Thread: pure function.
//
// Every byte of every buffer, slot and stage holds an expression: a leaf (the byte that a rank
// contributed) or a fold of expressions. The run proves, for the given sizes and bounds,
//   completion   nobody waits for ever, though credits come back only every half depth;
//   result       every output has the expression that the collective promises, each contribution
//                counted once, `finishes` on exactly the folds that complete, and the same
//                expression (so the same bits) on every rank that gets the result; the order of
//                folds that an algorithm promises (select.h);
//   memory       inputs are not written, nothing is written but outputs, nothing is read that was
//                not written, a slot is touched only between its wait and its signal, pieces fit;
//   messages     both ends agree on the bytes of each message, and every counter is balanced at the
//                end; a stage's message goes to all others of the island, and all cut alike;
//   no races     any two accesses to a byte, one of them a write, are ordered by happens-before.
//
// Why one schedule proves it for all. Lanes are sequential, read nothing that steers them, and talk
// only through counters that one lane advances and one lane waits for (checked per plan): a Kahn
// network. So all schedules run the same steps, match the same signals with the same waits, and
// either all complete or none does. Happens-before is the order within lanes and from a signal to
// its wait, hence the same in all schedules too; vector clocks compute it. Without a race every
// read sees the same write in every schedule, and so the result is proved for all of them. A wait
// for credit is ordered after the oldest credit that could satisfy it and no later one, and
// completion is proved with the laziest return: both hold for any way of returning credits between.
//
// Zero copy. Such a message is read in its source buffer, between the receiver's wait and its
// credit; a device that reads the buffer for a put does so before. Whether a rank sends without
// copies changes no signal and no wait, so happens-before is the same, and only where its receivers
// read differs: no race where all do and none where nobody does is no race in between.
//
// Direct placement. Such a message is written into the receiver's output between the receiver's
// grant, given when it starts the operation, and the message's signal. A sender that has no grant
// yet uses the slot, so only where the bytes are in between differs, and again all or none prove
// the rest.
//
// Which depth proves the others. Of a depth d at least d/2 + 1 messages are always usable, so for
// completion 2 is the tightest. Fewer slots order more, so for races it is a depth that is never
// used up. The tests prove both.
//
// Several operations run one behind the other without draining counters, slots or stages. On each
// rank an operation starts when the one before it is done on that rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/plan/islands.h"
#include "csrc/plan/plan.h"

namespace rdmacoll {

// One operation of the whole world. Sizes are in bytes, and an element is one byte.
struct WorldPlan {
  std::vector<Plan> plans;  // by rank
  Islands islands = Islands::together(1);
  uint16_t root = 0;
  bool in_place = false;  // outputs share the inputs' memory where an operation allows it
  uint64_t zero_copy_senders =
      0;                  // a bit for each rank whose messages are zero-copy where they may be
  uint64_t granters = 0;  // a bit for each rank that grants its output to all that may write it
  uint64_t bytes = 0;     // all_reduce, reduce, broadcast
  // The others: by rank, of each of the plan's blocks; 0 for blocks that the rank does not have.
  std::vector<std::vector<uint64_t>> block_bytes;
};

struct Bounds {
  uint64_t slot_bytes = 4;
  uint64_t stage_bytes = 4;
  uint64_t grain = 1;
  uint32_t slot_depth = 2;  // even, as is stage_depth
  uint32_t stage_depth = 2;
};

inline constexpr uint16_t kMaxVerifiedWorld = 64;

// Empty: proved. Else what is wrong, with operation, rank, lane, step and tile.
std::string verify(const std::vector<WorldPlan>& operations, const Bounds& bounds);

}  // namespace rdmacoll
