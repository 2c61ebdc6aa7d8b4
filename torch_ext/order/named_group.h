// NamedGroup: operations that ranks submit by name, each in an order of its own, and that all run
// in one order, without a cycle: what is submitted is said to rank 0 at once, which says back what
// all have submitted (csrc/order). Nothing is sent while nothing is submitted.
// Floor: torch_ext/order. Thread: any.
//
// Two backends of the same ranks: one for what ranks say of names, one for the tensors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/engine/mail.h"
#include "csrc/order/sequencer.h"
#include "csrc/order/submitter.h"
#include "torch_ext/backend/backend.h"
#include "torch_ext/order/named_run.h"
#include "torch_ext/order/named_work.h"

namespace rdmacoll::torch_ext {

class NamedGroup : public std::enable_shared_from_this<NamedGroup> {
 public:
  using BackendRef = c10::intrusive_ptr<RdmaBackend>;
  using Tensors = std::vector<at::Tensor>;

  static std::shared_ptr<NamedGroup> make(BackendRef tensors, BackendRef names);
  NamedGroup(BackendRef tensors, BackendRef names);
  ~NamedGroup();
  NamedGroup(const NamedGroup&) = delete;
  NamedGroup& operator=(const NamedGroup&) = delete;

  // Throws ValueError for a name that is in flight, RuntimeError for tensors that are not dense or
  // not on the CPU, or are written and overlap themselves; and what the group has failed with.
  NamedWorkPtr submit(NamedRequest request, Tensors inputs, Tensors outputs);
  NamedWorkPtr join();
  // Has rank 0 tell all ranks who is late.
  void ask_who_is_late();
  // The first answer to any rank since the last time; none has come: nullopt.
  std::optional<Late> take_late();
  // Messages that this rank has sent about names so far.
  uint64_t messages();
  // What is in flight fails, here and on the others, unless it ends within a moment.
  void close();

 private:
  // What is to be done once the lock is free.
  struct Later {
    std::vector<StartedRuns> started;
    std::vector<std::pair<NamedWorkPtr, Status>> ended;
  };

  void hear(uint32_t rank, const Status& status, std::span<const std::byte> message);
  // All of these under the lock.
  Status say(Bytes message, Later& later);
  Status decide(Later& later);
  Status take_decisions(std::span<const std::byte> message, Later& later);
  Status hear_late(Late late);
  void run(std::vector<NamedRun> runs, Later& later);
  void end_stages(Later& later);
  void end(const NamedWorkPtr& work, const Status& status, Later& later);
  void fail(const Status& why, Later& later);

  void carry_out(Later later);
  void watch(StartedRuns started);
  void go_on(const StartedRuns& started);
  void end_runs(const StartedRuns& started, const Status& status);

  const BackendRef tensors_;
  const BackendRef names_;
  const bool is_first_;  // rank 0, which has the sequencer
  std::shared_ptr<Mail> mail_;

  std::mutex mutex_;
  std::optional<Sequencer> sequencer_;
  Submitter submitter_;
  std::map<std::string, NamedWorkPtr> waiting_;  // for the others to submit it, by name
  NamedWorkPtr join_;                            // while this rank has joined
  std::optional<Late> late_;
  Status failure_;
  // What runs has stages that are not started: what is decided meanwhile is held, as all ranks
  // start in one order.
  bool is_in_stages_ = false;
  std::vector<std::vector<NamedRun>> held_;
  uint32_t batches_ = 0;  // started and not ended
  uint64_t messages_ = 0;
};

}  // namespace rdmacoll::torch_ext
