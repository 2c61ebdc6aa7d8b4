// SymbolicWorld: all ranks, their lanes, counters, slots and stages, run step by step on symbols.
// Floor: plan/verify, behind verify.h only.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "csrc/plan/tiling.h"
#include "csrc/plan/verify/buffers.h"
#include "csrc/plan/verify/memory.h"
#include "csrc/plan/verify/symbols.h"
#include "csrc/plan/verify/verify.h"

namespace rdmacoll {

class SymbolicWorld {
 public:
  SymbolicWorld(const std::vector<WorldPlan>& operations, const Bounds& bounds);

  // Runs everything; empty, or the first thing that is wrong.
  std::string run();

 private:
  // Bytes that an operand names in a tile. No cells: it names none, and failure_ says why.
  struct Place {
    Cells* cells = nullptr;
    uint64_t offset = 0;
  };

  // Where a message is that is in no slot: in the sender's source buffer, or placed in the
  // receiver's output. Without cells it is not there.
  struct OutOfSlot {
    Place source;
    uint64_t bytes = 0;         // that the receiver may read there
    uint16_t source_block = 0;  // the first of the source
    Place output;
  };

  struct Message {
    uint64_t bytes = 0;
    bool placed = false;  // what its signal said
    OutOfSlot out_of_slot;
    Clock past;  // of its signal
  };

  // The messages of one (sender, receiver, channel). Most are never used: a list costs nothing.
  struct Queue {
    uint64_t acquired = 0;           // Wait(Credit) by the sender
    uint64_t sent = 0;               // Signal(Data) by the sender
    uint64_t waited = 0;             // Wait(Data) by the receiver
    uint64_t credited = 0;           // Signal(Credit) by the receiver
    uint64_t filled_bytes = 0;       // of the message acquired last
    uint64_t message_bytes = 0;      // of the same, as its operands say
    bool filled_placed = false;      // what its operand said of it
    std::list<Message> messages;     // signalled and not returned
    std::list<Clock> credit_clocks;  // of credits not yet used
    uint64_t zero_copies = 0;        // messages sent up to the last zero-copy one
    Clock returns;                   // of all credits for zero-copy messages
    std::vector<Cells> slots;
  };

  struct LaneState {
    uint64_t tile = 0;
    uint64_t tiles = 0;
    uint32_t step = 0;  // within the lane
  };

  struct Rank {
    uint32_t operation = 0;  // the one it is in
    std::vector<LaneState> lanes;
    std::vector<std::vector<Cells>> stages;  // by stage channel, then index
    Clock past;                              // what it knew at the end of its last operation
  };

  // One operation on one rank.
  struct Seat {
    Tiling tiling;
    uint32_t start_time = 0;  // of lane 0; 0: not started
    Clock granted;            // what the rank knew at the start
  };

  // Who is running; what messages are about.
  struct Cursor {
    uint16_t rank = 0;
    uint32_t lane = 0;
    uint64_t tile = 0;
    uint32_t step = 0;  // in Plan::steps
  };

  // world.cc: lanes, operations, counters
  void start(uint16_t rank);
  bool advance(uint16_t rank);  // true: something ran
  bool run_lane(uint16_t rank, uint32_t lane);
  bool zero_copies_are_read(uint16_t rank);
  void end_operation(uint16_t rank);
  bool run_step(const Step& step);  // false: it has to wait
  bool run_wait(const Step& step, uint64_t bytes);
  void run_signal(const Step& step, uint64_t bytes);
  bool wait_credit(Queue& queue, uint32_t depth);
  bool wait_data(Queue& queue, const Step& step, uint64_t bytes);
  void check_deadlock();
  void check_balance();
  void check_results();
  bool reads_stages_of(uint16_t reader, uint16_t rank) const;
  uint16_t first_reader(uint16_t rank) const;
  void refuse(const std::string& why);  // where it is, and why; keeps the first

  // direct_placement.cc: messages that are written into the receiver's output
  bool granted(const Step& step);  // false: a receiver has not come as far yet
  bool grants(uint16_t receiver) const {
    return (operations_[ranks_[at_.rank].operation].granters >> receiver & 1) != 0;
  }
  uint16_t placed_block(const Plan& receiver, BlockRange sent) const;
  Place place_in_output(uint16_t receiver, BlockRange sent, uint64_t bytes);
  void place_zero_copy(const Step& step, OutOfSlot& message);
  void read_placed(const OutOfSlot& message);

  // move.cc: copies and reductions
  void move(const Step& step, uint64_t bytes);
  void move_byte(const Step& step, uint64_t i);
  Value read(const Place& place, uint64_t i);
  void write(const Place& place, uint64_t i, Value value);
  Place place_of(const Operand& operand, uint64_t bytes);
  Place user_place(const std::vector<std::shared_ptr<Cells>>& buffers, const Operand& operand,
                   uint64_t bytes);
  Place slot_place(const Operand& operand, uint64_t bytes);
  Place peer_slot_place(const Operand& operand, uint64_t bytes);
  Place source_place(const OutOfSlot& message, uint64_t bytes);
  Place part_of_source(const OutOfSlot& message, const Operand& operand, uint64_t bytes);
  OutOfSlot zero_copy_source(const Step& step);
  Place stage_place(const Operand& operand, uint64_t bytes);
  Place peer_stage_place(const Operand& operand, uint64_t bytes);
  void check_overlap(const Step& step, uint64_t bytes);
  Place refused(const std::string& why);

  const Plan& plan() const { return plan_of(at_.rank); }
  const Plan& plan_of(uint16_t rank) const {
    return operations_[ranks_[rank].operation].plans[rank];
  }
  const Tiling& tiling() const { return seats_[ranks_[at_.rank].operation][at_.rank].tiling; }
  bool sends_zero_copy() const {
    return (operations_[ranks_[at_.rank].operation].zero_copy_senders >> at_.rank & 1) != 0;
  }
  Buffers& buffers() { return buffers_[ranks_[at_.rank].operation][at_.rank]; }
  Queue& queue(uint16_t from, uint16_t to, uint8_t channel) {
    return queues_[(size_t{from} * world_ + to) * kPlanChannels + channel];
  }
  uint32_t depth_of(uint8_t channel) const {
    return is_stage_channel(channel) ? bounds_.stage_depth : bounds_.slot_depth;
  }
  uint32_t lane_id(uint16_t rank, uint32_t lane) const { return rank * lanes_ + lane; }
  uint32_t me() const { return lane_id(at_.rank, at_.lane); }

  const std::vector<WorldPlan>& operations_;
  const Bounds bounds_;
  const uint16_t world_;
  uint32_t lanes_ = 1;  // the most of any plan
  Symbols symbols_;
  std::vector<std::vector<Seat>> seats_;       // by operation, rank
  std::vector<std::vector<Buffers>> buffers_;  // by operation, rank
  std::vector<Rank> ranks_;
  std::vector<Queue> queues_;
  std::vector<Clock> clocks_;  // by lane of the world
  // Of the step that moves, kept for their memory.
  std::vector<Place> places_;
  std::vector<Value> sources_;
  Cursor at_;
  std::string failure_;
};

}  // namespace rdmacoll
