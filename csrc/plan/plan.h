// Plan: one collective on one rank, as data. It says who copies, folds, signals and waits in which
// order, and nothing about addresses, bytes, transports or threads.
// Floor: plan (sees base only). Thread: values, immutable once built.
//
// A plan is lanes; the steps of a lane run in order, lanes are ordered only by waits. Every lane
// runs its steps once per tile (tiling.h cuts the tensor into tiles), so the size of a plan does
// not depend on the bytes.
//
// Messages. A (sender, receiver, channel) is a queue of messages with one counter; the k-th Data
// signal on it matches the k-th Data wait. A message occupies one of the channel's slots (memory of
// the receiver that only this sender writes), or, on a stage channel, one of the sender's stages
// (memory of the sender that its island may read (islands.h); every message of a stage channel goes
// to all others of the island). At most `depth` messages are unconsumed: a sender waits for Credit
// before it writes, a receiver signals Credit once it has read. Counters run on from plan to plan,
// so an operation may start while the slots of the one before are still being read.
//   to send:    Wait(Credit, p)   Copy/Reduce ... -> PeerSlot(p)   Signal(Data, p)
//   to receive: Wait(Data, p)     Copy/Reduce Slot(p) -> ...        Signal(Credit, p)
// All steps of one direction of a (peer, channel) are in one lane. A rank also sends messages to
// itself: what one of its lanes has made and another one needs goes through its own slots.
//
// Zero copy. What a message holds often lies in one of the sender's user buffers too, its *source
// buffer*, and stays there until the receiver has returned the credit. The Data signal of such a
// message names that buffer, and its copies into the slot or stage say `zero_copy`. Who runs the
// plan may leave these copies out, and let the receiver (or the network device) read the source
// buffer. The operation is then over when all such messages have been given back. What a rank sends
// to itself is always copied. Each edge decides by itself, and the other end's plan is the same;
// verify.h proves both.
//
// Direct placement. A message that its receiver only copies, into the same place of its Output,
// says so on both ends (`placed`). The receiver may grant that place for the whole operation. The
// sender then writes there instead of into the slot, which the message occupies all the same. This
// changes no step either, and verify.h proves it with and without. Such messages come on
// kOrderedChannel.
//
// Blocks. What a block b is, and which blocks Input and Output have on a rank of a world of n:
//   all_reduce, reduce, broadcast: a part of the one buffer; the plan says how many (contiguous).
//     The root of a broadcast has one buffer, its Input; the plan does not write it.
//   all_gather, gather: rank b's contribution. Input has block `rank`; Output all, on the root.
//   reduce_scatter: what rank b receives. Input has all; Output has block `rank`.
//   scatter: what rank b receives. Input has all, on the root; Output has block `rank`.
//   all_to_all: what I send to rank b < n, in Input; what I get from rank b - n < n, in Output.
// A plan may number blocks that belong to ranks otherwise (not those of an all_to_all), so that
// those of an island are one range: block b is then of rank block_ranks[b].
//
// Blocks of any size. Of all_to_all, gather and scatter a rank knows the sizes of the blocks that
// it has, and that is enough for plans of kOfAnySizes. In the others ranks pass on what others have
// for others, and need all blocks of all ranks to be of one size. In an all_to_all such blocks have
// numbers from 2n on, which messages use again and again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rdmacoll {

enum class Collective : uint8_t {
  AllReduce,
  Broadcast,
  Reduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Gather,
  Scatter,
  Barrier,
};
inline constexpr size_t kCollectives = static_cast<size_t>(Collective::Barrier) + 1;

enum class Algorithm : uint8_t {
  Direct,
  Ring,
  Tree,
  HalvingDoubling,
  OneShot,
  TwoShot,
  Dissemination,
  Rails,
  Leaders,
};
inline constexpr size_t kAlgorithms = static_cast<size_t>(Algorithm::Leaders) + 1;
// Of all_to_all, gather and scatter: what needs of a rank but the sizes of the blocks that it has.
inline constexpr Algorithm kOfAnySizes = Algorithm::Direct;

// The collective folds contributions; the others only move bytes.
bool reduces(Collective collective);
// Input and Output are one buffer each, tiled by Tiling::contiguous; of the others every block is
// one of its own.
bool is_contiguous(Collective collective);

const char* collective_name(Collective collective);
const char* algorithm_name(Algorithm algorithm);

// Blocks [first, first + count) of the operation; tiling.h gives their bytes. count == 0 is a
// token: a step that moves no data and runs in the first tile only.
struct BlockRange {
  uint16_t first = 0;
  uint16_t count = 0;
  bool operator==(const BlockRange&) const = default;
};

enum class Buffer : uint8_t {
  Input,      // the caller's input, by block; read only
  Output,     // the caller's output, by block; may be the same memory as the input
  Slot,       // my slot holding the newest message waited for from `rank` on `channel`
  PeerSlot,   // the slot at `rank` that my next Data signal to it on `channel` will announce
  Stage,      // my stage that my next Data signals on `channel` will announce
  PeerStage,  // the stage of `rank` that I last waited for on `channel`; mapped peers only
};

struct Operand {
  Buffer buffer;
  uint8_t channel = 0;  // of Slot, PeerSlot, Stage, PeerStage
  uint16_t rank = 0;    // of Slot, PeerSlot, PeerStage
  BlockRange blocks;    // a slot holds its message's range from its first byte; a stage holds every
                        // block of a group at its own place (Tiling::stage_offset)
  bool zero_copy = false;     // of PeerSlot, Stage: not written where the message is sent so
  bool placed = false;        // of PeerSlot, Slot: may be in the receiver's Output instead
  uint16_t source_first = 0;  // of PeerStage: the first block of the message's source buffer
  BlockRange message = {};    // of PeerSlot, Slot: the message's blocks, where these are a part
  bool operator==(const Operand&) const = default;
};

// A Copy leaves a destination alone that is its source's own memory (in-place operations). A
// destination of a Reduce may be one of its sources.
enum class StepKind : uint8_t { Wait, Signal, Copy, Reduce };
enum class Counter : uint8_t { Data, Credit };

struct Step {
  StepKind kind;
  Counter counter = Counter::Data;  // Wait, Signal
  uint8_t channel = 0;              // Wait, Signal
  uint16_t peer = 0;                // Wait, Signal
  bool finishes = false;            // Reduce: its result has every contribution (where AVG divides)
  bool placed = false;        // Wait, Signal of Data: the message may be in the receiver's Output
  uint16_t destinations = 0;  // Copy, Reduce: how many of the operands are destinations, the last
  uint16_t operands = 0;  // Copy, Reduce: sources, then destinations; Signal of Data: its source
                          // (what of it the peer reads, in Input or Output), if it has one
  uint32_t first_operand = 0;  // in Plan::operands
  BlockRange blocks{};         // the step is skipped in a tile in which these hold no bytes; the
                               // two ends of a message name ranges of equal bytes
  bool operator==(const Step&) const = default;
};

struct Lane {
  uint32_t first_step = 0;
  uint32_t steps = 0;
};

// How the channels of a communicator are used by plans; p2p has its own behind these.
inline constexpr uint8_t kSlotChannels = 2;   // 0, 1: slots at the receiver
inline constexpr uint8_t kStageChannels = 3;  // 2, 3, 4: stages at the sender
inline constexpr uint8_t kFirstStageChannel = kSlotChannels;
inline constexpr uint8_t kPlanChannels = kSlotChannels + kStageChannels;
inline constexpr uint8_t kOrderedChannel = 0;
constexpr bool is_stage_channel(uint8_t channel) {
  return channel >= kFirstStageChannel && channel < kPlanChannels;
}

struct Plan {
  Collective collective;
  Algorithm algorithm;
  uint16_t rank = 0;
  uint16_t world = 1;
  uint16_t blocks = 1;        // blocks of the operation
  uint16_t slot_blocks = 0;   // the most blocks that one slot message holds; 0: it uses no slots
  uint16_t stage_blocks = 0;  // of a group, where it uses stages; else 0. Block b is of group
                              // b / stage_blocks; a stage message holds blocks of one group
  uint16_t stage_reader = 0;  // one of those that read this rank's stages, where it uses them
  std::vector<uint16_t> block_ranks;  // empty: block b is rank b's
  std::vector<uint16_t> peers;        // ranks that it sends to or receives from
  std::vector<Lane> lanes;
  std::vector<Step> steps;
  std::vector<Operand> operands;
};

// Whose block it is, where blocks belong to ranks.
inline uint16_t rank_of(const Plan& plan, size_t block) {
  return plan.block_ranks.empty() ? static_cast<uint16_t>(block) : plan.block_ranks[block];
}

// Where in a user's buffer the bytes that a Copy or Reduce moves lie when it is done; nullptr: not
// in any.
const Operand* source_of(const Plan& plan, const Step& step);

}  // namespace rdmacoll
