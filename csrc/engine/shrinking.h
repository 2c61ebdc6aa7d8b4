// Shrinking: makes a smaller group of some ranks of a group, over the links that this has, whether
// it has failed or not. Nobody needs to answer: each says where it is (shrink_state.h) and reads
// what the others say. Floor: engine. Thread: one at a time; set-up verbs run in it, reading in the
// driver.
//
// All that are not excluded call it, and go through the stages of a ShrinkState together. Each
// excludes whom its caller names, who is gone, who declined, and whom another excludes that it does
// not exclude itself: so the sets grow until they are equal. When one grows, its rank begins anew
// with the larger set. A rank goes one stage on when all that it does not exclude say the same set
// and are no less far. Made is what decides: a rank that has seen all at Made says Decided, and who
// reads that takes the same group, even if it has begun anew since, for it must hold it.
//
// What is guaranteed, as long as no two living ranks lose each other:
//   - All calls that end well give the same group; every rank of it held it when it was decided.
//   - Whoever was known to be gone when the last of them called is not in it. One that goes later
//     may be, and is missed in the first operation that needs it: shrink the new group then.
//   - A call ends by its deadline. One that timed out, or was interrupted, may be called again and
//     goes on where it was; the rest need not have noticed.
// Two living ranks that lose each other exclude each other. Whom others exclude is told so and has
// an error. If that parts the ranks into halves of which none reaches the other, each half makes a
// group: a caller that must not go on in a minority compares the sizes. (ULFM's MPI_Comm_shrink
// agrees on its failed ranks alike, and takes a detector that does not err for granted.)
// The old group stays as it is, and may be destroyed once the call has ended.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/engine/connect/group_setup.h"
#include "csrc/engine/drive/progress.h"
#include "csrc/engine/failure/shrink_state.h"
#include "csrc/engine/group/group.h"

namespace rdmacoll {

class Communicator;

// A group made of some ranks of another, and which they are: `ranks` by rank in the new one.
struct ShrinkResult {
  std::shared_ptr<Communicator> communicator;
  std::vector<int> ranks;
};

class Shrinking {
 public:
  // Makes a communicator of a new group; told who of the old one is not in it.
  using Make = std::function<std::shared_ptr<Communicator>(NewGroup, const RankSet& excluded)>;

  // The group, the transports, who links and who drives, and the clock outlive this.
  Shrinking(Group& group, Transports& transports, Linker& linker, Progress& progress,
            const Clock& clock, Config config, Make make);
  ~Shrinking();

  // A whole call, in the caller's thread: Communicator::shrink.
  Result<ShrinkResult> run(std::span<const int> excluded, int64_t timeout_ms,
                           const InterruptCheck& interrupt);

  // --- its steps, one by one, for who drives by itself -------------------------------------------
  // At the start of a call, with whom the caller names.
  Status exclude(std::span<const int> ranks);

  // One turn: read what the others say, drive that until it is done, consider it.
  enum class Turn : uint8_t { Waiting, Moved, Over };
  WorkPtr read();
  Result<Turn> consider();
  // For whom it waits, in words.
  std::string missing() const;
  // Once it is Over.
  ShrinkResult take();

 private:
  const Members& members() const { return group_.members(); }
  uint32_t world() const { return members().world(); }
  bool is_member(uint32_t rank) const { return rank != members().rank() && !excluded_[rank]; }
  // Whether the rank says the same set and is no less far.
  bool is_with_me(uint32_t rank) const;
  Status say(ShrinkStage stage);
  // Whether those that are not excluded can all meet.
  Status may_be_made_of(const RankSet& excluded) const;
  Status excluded_by(uint32_t rank) const;
  Result<bool> adopt_decision();
  Status make_group();
  Result<RankSet> whom_to_exclude() const;
  Status begin_anew(RankSet excluded);
  Result<bool> go_on();
  Status make_ready();
  std::pair<uint32_t, uint32_t> place() const;
  std::vector<std::string> records() const;
  Status next_stage();
  Status fail(Status status);

  Group& group_;
  Transports& transports_;
  Linker& linker_;
  Progress& progress_;
  const Clock& clock_;
  const Config config_;
  const Make make_;
  std::mutex running_;  // held by run()

  ShrinkStage stage_ = ShrinkStage::Agreeing;
  RankSet excluded_;
  std::optional<GroupSetup> setup_;
  // Those made, by whom they exclude: one of them may have been decided.
  std::vector<std::pair<RankSet, std::shared_ptr<Communicator>>> made_;
  std::shared_ptr<Communicator> result_;
  Status failure_;  // for good
  Status not_yet_;  // why the ranks of the next group are not linked yet

  WorkPtr reading_;
  // By rank, from the first reading on.
  RankSet gone_;                                   // when it began
  std::vector<std::optional<ShrinkState>> found_;  // the driver's until it is done
};

}  // namespace rdmacoll
