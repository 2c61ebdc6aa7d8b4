// Communicator: life, waits, point-to-point. The collectives are in collectives.cc.
// Floor: engine. Thread: any.
#include "csrc/engine/communicator.h"

namespace rdmacoll {
namespace {

Room room_of(const Layout& layout) { return {layout.slot_bytes(), layout.stage_bytes()}; }

}  // namespace

Communicator::Communicator(std::unique_ptr<Group> group, uint32_t token, Islands islands,
                           EngineContext context, int64_t timeout_ms, std::shared_ptr<void> keeps,
                           std::unique_ptr<Shrinking> shrinking)
    : group_(std::move(group)),
      token_(token),
      islands_(std::move(islands)),
      context_(context),
      choices_(context.tuning, islands_, room_of(group_->members().layout()), context.preference),
      timeout_ms_(timeout_ms),
      keeps_(std::move(keeps)),
      shrinking_(std::move(shrinking)) {
  context_.progress.add(*group_);
}

Communicator::~Communicator() {
  context_.progress.remove(*group_);
  context_.linker.remove(token_, Release::Keep);
  context_.progress.notify({});  // some transports tell the peers in the driver's next round
}

int Communicator::rank() const { return static_cast<int>(group_->members().rank()); }
int Communicator::size() const { return static_cast<int>(group_->members().world()); }
std::vector<PeerPath> Communicator::paths() const {
  std::vector<PeerPath> paths;
  for (const auto& [rank, path] : context_.linker.paths(token_)) {
    paths.push_back({static_cast<int>(rank), path.transport->info().name, path.reason});
  }
  return paths;
}

std::optional<std::string> Communicator::address_of(int rank) const {
  return context_.linker.address_of(token_, static_cast<uint32_t>(rank));
}

TransportCounters Communicator::counters() const { return context_.transports.counters(); }

void Communicator::set_timeout_ms(int64_t timeout_ms) { timeout_ms_.store(timeout_ms); }
int64_t Communicator::timeout_ms() const { return timeout_ms_.load(); }

Result<WorkPtr> Communicator::send(ConstBuffer data, int destination, int32_t tag,
                                   const CallOptions& options) {
  RDMACOLL_RETURN_IF_ERROR(check_peer("destination", destination));
  auto work = works_.make();
  work->set_source_rank(rank());
  if (destination == rank()) work->set_to_self();
  const int64_t now_ns = context_.clock.now_ns();
  RDMACOLL_RETURN_IF_ERROR(group_->submit(SendOp{.work = work,
                                                 .data = static_cast<const std::byte*>(data.data),
                                                 .bytes = data.bytes,
                                                 .peer = static_cast<uint32_t>(destination),
                                                 .tag = tag,
                                                 .started_ns = now_ns,
                                                 .deadline_ns = deadline_ns(now_ns, options)}));
  context_.progress.notify({.caller_waits = options.waits});
  return work;
}

Result<WorkPtr> Communicator::recv(MutableBuffer data, int source_or_any, int32_t tag,
                                   const CallOptions& options) {
  if (source_or_any != kAnySource) RDMACOLL_RETURN_IF_ERROR(check_peer("source", source_or_any));
  auto work = works_.make();
  const int64_t now_ns = context_.clock.now_ns();
  RDMACOLL_RETURN_IF_ERROR(group_->submit(RecvOp{.work = work,
                                                 .data = static_cast<std::byte*>(data.data),
                                                 .bytes = data.bytes,
                                                 .source = source_or_any,
                                                 .tag = tag,
                                                 .started_ns = now_ns,
                                                 .deadline_ns = deadline_ns(now_ns, options)}));
  context_.progress.notify({.caller_waits = options.waits});
  return work;
}

Status Communicator::check_peer(const char* argument, int peer) const {
  if (peer >= 0 && peer < size()) return Status();
  return Status(StatusCode::InvalidArgument,
                std::string(argument) + "=" + std::to_string(peer) +
                    " is not a rank of this group; give one from 0 to " +
                    std::to_string(size() - 1));
}

int64_t Communicator::deadline_ns(int64_t now_ns, const CallOptions& options) const {
  const int64_t limit_ms = options.timeout_ms < 0 ? timeout_ms() : options.timeout_ms;
  return now_ns + limit_ms * 1'000'000;
}

Status Communicator::wait_all(std::span<Work* const> works, int64_t timeout_ms,
                              const InterruptCheck& interrupt) {
  for (Work* work : works) {
    if (work->to_self()) [[unlikely]]
      group_->waits_for_own(*work);
  }
  return context_.progress.wait(works, timeout_ms, interrupt);
}

Status Communicator::wait(Work& work, int64_t timeout_ms, const InterruptCheck& interrupt) {
  Work* const works[] = {&work};
  Status stopped = wait_all(works, timeout_ms, interrupt);
  return stopped.ok() ? work.status() : stopped;
}

Status Communicator::failure() const { return group_->failure(); }

std::vector<int> Communicator::lost_ranks() const {
  const RankSet lost = group_->members().lost();
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (lost[static_cast<size_t>(rank)]) ranks.push_back(rank);
  }
  return ranks;
}

Result<ShrinkResult> Communicator::shrink(std::span<const int> excluded, int64_t timeout_ms,
                                          const InterruptCheck& interrupt) {
  return shrinking_->run(excluded, timeout_ms, interrupt);
}

void Communicator::abort(const std::string& reason) {
  group_->fail_soon(Status(StatusCode::Aborted, reason));
  context_.progress.notify({});
}

void Communicator::leave(const std::string& reason) {
  group_->fail_soon(Status(StatusCode::Aborted, reason), ExitReason::Left);
  context_.progress.notify({});
}

}  // namespace rdmacoll
