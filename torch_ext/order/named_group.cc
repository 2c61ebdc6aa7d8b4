// NamedGroup. Floor: torch_ext/order.
#include "torch_ext/order/named_group.h"

#include <atomic>
#include <exception>

#include "csrc/base/clock.h"
#include "torch_ext/base/errors.h"
#include "torch_ext/base/interrupt.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

// While so many batches are under way rank 0 lets names gather, and then has them run together:
// short tensors are copied into one operation.
constexpr uint32_t kBatchesAtOnce = 2;

// Its words alone: torch's have where it was thrown besides, and who throws it again says that it
// is of rdma.
Status status_of(const std::exception& error) {
  constexpr std::string_view kSaidAgain = "rdma: ";
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  std::string words = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  if (words.starts_with(kSaidAgain)) words.erase(0, kSaidAgain.size());
  return Status(StatusCode::System, std::move(words));
}

}  // namespace

std::shared_ptr<NamedGroup> NamedGroup::make(BackendRef tensors, BackendRef names) {
  auto group = std::make_shared<NamedGroup>(std::move(tensors), std::move(names));
  group->mail_ = std::make_shared<Mail>(
      group->names_->session().communicator(),
      [weak = std::weak_ptr(group), in_flight = group->names_->session().in_flight()](
          uint32_t rank, const Status& status, std::span<const std::byte> message) {
        const InCallbacks in_callbacks(*in_flight);  // this thread may be the last to let go of it
        if (const auto self = weak.lock()) self->hear(rank, status, message);
      });
  const auto ranks = static_cast<uint32_t>(group->names_->getSize());
  const WithoutGil without_gil;
  if (group->is_first_) {
    for (uint32_t rank = 1; rank < ranks; ++rank) group->mail_->listen_to(rank);
  } else {
    group->mail_->listen_to(0);
  }
  return group;
}

NamedGroup::NamedGroup(BackendRef tensors, BackendRef names)
    : tensors_(std::move(tensors)), names_(std::move(names)), is_first_(names_->getRank() == 0) {
  if (is_first_) sequencer_.emplace(static_cast<uint32_t>(names_->getSize()));
}

NamedGroup::~NamedGroup() = default;

NamedWorkPtr NamedGroup::submit(NamedRequest request, Tensors inputs, Tensors outputs) {
  throw_if_failed(names_->session().usable());
  // Here, as the others start it once this rank has said that it has it.
  const Check check(named_kind_name(request.kind));
  check.dense(inputs, "input");
  check.written(outputs, "tensor");
  Later later;
  auto work = std::make_shared<NamedWork>(tensors_, names_, std::move(request), std::move(inputs),
                                          std::move(outputs));
  const WithoutGil without_gil;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    throw_if_failed(failure_, names_->session().communicator());
    Bytes message;
    const Status submitted = submitter_.submit(work->request(), message);
    TORCH_CHECK_VALUE(submitted.ok(), submitted.message());
    waiting_.emplace(work->request().name, work);
    const Status said = say(std::move(message), later);
    if (!said.ok()) fail(said, later);
  }
  carry_out(std::move(later));
  return work;
}

NamedWorkPtr NamedGroup::join() {
  throw_if_failed(names_->session().usable());
  Later later;
  auto work = std::make_shared<NamedWork>(tensors_, names_, NamedRequest{}, Tensors{}, Tensors{});
  const WithoutGil without_gil;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    throw_if_failed(failure_, names_->session().communicator());
    Bytes message;
    const Status joined = submitter_.join(message);
    TORCH_CHECK_VALUE(joined.ok(), joined.message());
    join_ = work;
    const Status said = say(std::move(message), later);
    if (!said.ok()) fail(said, later);
  }
  carry_out(std::move(later));
  return work;
}

void NamedGroup::ask_who_is_late() {
  Later later;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return;  // whoever waits is told
    Bytes message;
    Submitter::ask(message);
    const Status said = say(std::move(message), later);
    if (!said.ok()) fail(said, later);
  }
  carry_out(std::move(later));
}

std::optional<Late> NamedGroup::take_late() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(late_, std::nullopt);
}

uint64_t NamedGroup::messages() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return messages_;
}

void NamedGroup::close() {
  Later later;
  {
    const WithoutGil without_gil;
    names_->session().communicator().leave("shutdown() was called on rank " +
                                           std::to_string(names_->getRank()));
    const std::lock_guard<std::mutex> lock(mutex_);
    fail(Status(StatusCode::Aborted, "shutdown() was called on this rank"), later);
  }
  carry_out(std::move(later));
  tensors_->shutdown();
  names_->shutdown();
}

Status NamedGroup::say(Bytes message, Later& later) {
  if (!is_first_) {
    ++messages_;
    return mail_->send(0, std::make_shared<const Bytes>(std::move(message)));
  }
  RDMACOLL_RETURN_IF_ERROR(sequencer_->take(0, message));
  return decide(later);
}

// What comes from others, in a thread of the engine or one that waits.
void NamedGroup::hear(uint32_t rank, const Status& status, std::span<const std::byte> message) {
  Later later;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return;
    Status taken = status;
    if (taken.ok() && is_first_) {
      taken = sequencer_->take(rank, message);
      if (taken.ok()) taken = decide(later);
    } else if (taken.ok()) {
      taken = take_decisions(message, later);
    }
    if (!taken.ok()) fail(taken, later);
  }
  carry_out(std::move(later));
}

// All ranks take the same message, this one last: the others need not wait for what it starts.
Status NamedGroup::decide(Later& later) {
  if (batches_ + held_.size() >= kBatchesAtOnce) return Status();
  auto message = std::make_shared<const Bytes>(sequencer_->decisions());
  if (message->empty()) return Status();
  const auto ranks = static_cast<uint32_t>(names_->getSize());
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    ++messages_;
    RDMACOLL_RETURN_IF_ERROR(mail_->send(rank, message));
  }
  return take_decisions(*message, later);
}

Status NamedGroup::take_decisions(std::span<const std::byte> message, Later& later) {
  std::vector<Decision> decisions;
  RDMACOLL_RETURN_IF_ERROR(submitter_.take(message, decisions));
  const int64_t now_ns = SteadyClock().now_ns();  // one for all: they are a batch
  std::vector<NamedRun> together;
  const auto run_those = [&] {
    if (!together.empty()) run(std::exchange(together, {}), later);
  };
  for (Decision& decision : decisions) {
    if (decision.what == Decision::What::Late) {
      RDMACOLL_RETURN_IF_ERROR(hear_late(std::move(decision.late)));
      continue;
    }
    NamedWorkPtr work;
    if (decision.is_own) work = std::move(waiting_.extract(decision.name).mapped());
    if (decision.what == Decision::What::Run) {
      if (work != nullptr) work->times()->agree(now_ns);
      NamedRun next{std::move(decision.agreed), std::move(work)};
      if (!together.empty() && !goes_with(together.back(), next)) run_those();
      together.push_back(std::move(next));
      continue;
    }
    run_those();
    if (decision.what == Decision::What::Refused) {
      end(work, decision.why, later);
    } else {
      join_->times()->agree(now_ns);
      join_->set_last_joined(decision.last_joined);
      later.ended.emplace_back(std::exchange(join_, nullptr), Status());
    }
  }
  run_those();
  return Status();
}

Status NamedGroup::hear_late(Late late) {
  const auto ranks = static_cast<uint32_t>(names_->getSize());
  bool is_good = late.asked_by < ranks;
  for (const Unsubmitted& one : late.names) {
    for (const uint32_t rank : one.missing) is_good = is_good && rank < ranks;
  }
  if (!is_good) return malformed("rank 0 of the group");
  if (!late_) late_ = std::move(late);
  return Status();
}

void NamedGroup::run(std::vector<NamedRun> runs, Later& later) {
  if (is_in_stages_) {
    held_.push_back(std::move(runs));
    return;
  }
  try {
    later.started.push_back(start(*tensors_, runs));
    ++batches_;
    is_in_stages_ = later.started.back().next != nullptr;
  } catch (const std::exception& error) {
    for (const NamedRun& run : runs) {
      if (run.work != nullptr) end(run.work, status_of(error), later);
    }
  }
}

// The last one is started, or never will be: what was held is next.
void NamedGroup::end_stages(Later& later) {
  is_in_stages_ = false;
  for (std::vector<NamedRun>& runs : std::exchange(held_, {})) run(std::move(runs), later);
}

void NamedGroup::end(const NamedWorkPtr& work, const Status& status, Later& later) {
  submitter_.end(work->request().name);
  later.ended.emplace_back(work, status);
}

// What runs goes on, and ends by itself: others may leave once they have their part of it.
void NamedGroup::fail(const Status& why, Later& later) {
  if (!failure_.ok()) return;
  failure_ = why;
  for (auto& [name, work] : waiting_) later.ended.emplace_back(std::move(work), why);
  waiting_.clear();
  if (join_ != nullptr) later.ended.emplace_back(std::exchange(join_, nullptr), why);
}

void NamedGroup::carry_out(Later later) {
  for (const auto& [work, status] : later.ended) work->end(status);
  for (StartedRuns& started : later.started) watch(std::move(started));
  // Who waits for a work may be asleep in the engine.
  if (!later.ended.empty()) names_->session().communicator().context().progress.notify({});
}

// Once all works of the runs have ended, whichever thread that is. This one counts as a work, as
// there may be no other: a group of no tensors.
void NamedGroup::watch(StartedRuns started) {
  struct Watched {
    StartedRuns started;
    std::atomic<size_t> left;
  };
  auto watched = std::make_shared<Watched>(std::move(started), started.works.size() + 1);
  const std::vector<RdmaBackend::WorkRef> works = watched->started.works;
  const auto end_one = [watched, self = shared_from_this()] {
    if (watched->left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    Status status;
    try {
      for (const auto& one : watched->started.works) one->wait();
      for (const auto& finish : watched->started.finish) finish();
    } catch (const std::exception& error) {
      status = status_of(error);
    }
    if (status.ok() && watched->started.next != nullptr) return self->go_on(watched->started);
    self->end_runs(watched->started, status);
  };
  for (const RdmaBackend::WorkRef& work : works) {
    work->getFuture()->addCallback([end_one](c10::ivalue::Future&) { end_one(); });
  }
  end_one();
}

// With the next stage, which starts before what was decided since.
void NamedGroup::go_on(const StartedRuns& started) {
  Later later;
  Status status;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    try {
      later.started.push_back(started.next(*tensors_));
      if (later.started.back().next == nullptr) end_stages(later);
    } catch (const std::exception& error) {
      status = status_of(error);
    }
  }
  if (!status.ok()) return end_runs(started, status);
  carry_out(std::move(later));
}

void NamedGroup::end_runs(const StartedRuns& started, const Status& status) {
  // The others are in stages that this rank will not come to: they would wait for it.
  if (started.next != nullptr && tensors_->session().usable().ok())
    tensors_->session().communicator().leave(status.message());
  Later later;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (started.next != nullptr) end_stages(later);
    --batches_;
    for (const NamedRun& run : started.runs) {
      if (run.work != nullptr) end(run.work, status, later);
    }
    if (is_first_ && failure_.ok()) {
      const Status decided = decide(later);
      if (!decided.ok()) fail(decided, later);
    }
  }
  carry_out(std::move(later));
}

}  // namespace rdmacoll::torch_ext
