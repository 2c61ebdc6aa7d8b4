// Endpoint. Floor: engine. Thread: any.
#include "csrc/engine/endpoint.h"

#include <sched.h>

#include "csrc/engine/connect/sealed_bootstrap.h"
#include "csrc/engine/shrinking.h"
#include "csrc/plan/selection/select.h"

namespace rdmacoll {
namespace {

// A peer that runs answers within this time; then its turn on this very core may be what it waits
// for, and a yield costs next to nothing. With more ranks than cores that is so from the start.
constexpr int64_t kSpinUs = 5;

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

// What a group is called that some ranks of another make; its ranks as the job numbers them.
GroupName shrunk(const GroupName& name, const RankSet& excluded) {
  GroupName smaller{name.name + ":shrunk", {}};
  for (uint64_t rank = 0; rank < excluded.size(); ++rank) {
    if (!excluded[rank]) smaller.ranks.push_back(name.ranks.empty() ? rank : name.ranks[rank]);
  }
  return smaller;
}

FoldOrder fold_order(const Config& config) {
  if (config.deterministic == "layout") return FoldOrder::Layout;
  return config.deterministic == "1" ? FoldOrder::Ranks : FoldOrder::Position;
}

}  // namespace

Result<Tuning> tuning_of(const Config& config) {
  auto tuning = Tuning::parse(config.tuning.text);
  if (tuning.ok()) return tuning;
  return Status(tuning.status().code(),
                "RDMACOLL_TUNING='" + config.tuning.path + "', " + tuning.status().message() +
                    " (mend it, have `rdmacoll tune` write it anew, or unset RDMACOLL_TUNING)");
}

Preference preference_of(const Config& config) {
  return {algorithm_by_name(config.algorithm), fold_order(config)};
}

Endpoint::Endpoint(const Config& config, JobKey key, Tuning tuning)
    : config_(config),
      key_(std::move(key)),
      tuning_(std::move(tuning)),
      recorder_(config.flight_records > 0 ? std::make_shared<FlightRecorder>(config) : nullptr) {}

Result<std::shared_ptr<Endpoint>> Endpoint::open(const Config& config) {
  auto heap = Heap::create(config);
  if (!heap.ok()) return heap.status();
  return open(config, heap.take());
}

Result<std::shared_ptr<Endpoint>> Endpoint::open(const Config& config, std::shared_ptr<Heap> heap) {
  RDMACOLL_RETURN_IF_ERROR(check_algorithm("RDMACOLL_ALGO", config.algorithm));
  auto tuning = tuning_of(config);
  if (!tuning.ok()) return tuning.status();
  auto key = JobKey::load(config.secret.text);
  if (!key.ok()) return key.status();
  std::shared_ptr<Endpoint> endpoint(new Endpoint(config, key.take(), tuning.take()));
  auto process = ThisProcess::make();
  if (!process.ok()) return process.status();
  auto transports = Transports::open(config, endpoint->clock_, std::move(heap), process.value());
  if (!transports.ok()) return transports.status();
  endpoint->transports_ = transports.take();
  endpoint->linker_ =
      std::make_unique<Linker>(*endpoint->transports_, endpoint->clock_, process.value().alarm);
  const int64_t spin_us = config.spin_us >= 0 ? config.spin_us : kSpinUs;
  auto progress = ThreadProgress::open(*endpoint->transports_, endpoint->clock_, spin_us);
  if (!progress.ok()) return progress.status();
  endpoint->progress_ = progress.take();
  const auto drive = [&progress = *endpoint->progress_] { progress.notify({}); };
  endpoint->transports_->drive_by(drive);
  endpoint->linker_->drive_by(drive);
  endpoint->sessions_ =
      std::make_unique<Sessions>(*endpoint->transports_, *endpoint->linker_, *endpoint->progress_,
                                 endpoint->clock_, endpoint->recorder_);
  endpoint->linker_thread_ = std::make_unique<LinkerThread>(*endpoint->linker_);
  return endpoint;
}

Result<std::shared_ptr<Communicator>> Endpoint::create_communicator(int rank, int size,
                                                                    Bootstrap& bootstrap,
                                                                    int64_t timeout_ms,
                                                                    const std::string& algorithm,
                                                                    const GroupName& name) {
  if (size < 1 || size > static_cast<int>(kMaxWorld)) {
    return Status(StatusCode::InvalidArgument, "size=" + std::to_string(size) +
                                                   " is not possible; a group has 1 to " +
                                                   std::to_string(kMaxWorld) + " ranks");
  }
  if (rank < 0 || rank >= size) {
    return Status(StatusCode::InvalidArgument,
                  "rank=" + std::to_string(rank) + " is not in a group of " + std::to_string(size));
  }
  Config of_group = config_;
  if (!algorithm.empty()) of_group.algorithm = algorithm;
  RDMACOLL_RETURN_IF_ERROR(check_algorithm("algorithm", of_group.algorithm));
  SealedBootstrap sealed(bootstrap, key_, name.name, static_cast<uint32_t>(rank),
                         static_cast<uint32_t>(size));
  auto made = set_up_group(*transports_, *linker_, clock_, of_group, static_cast<uint32_t>(rank),
                           static_cast<uint32_t>(size), sealed, timeout_ms);
  if (!made.ok()) {
    progress_->notify({});  // some transports tell the peers in the driver's next round
    return made.status();
  }
  return adopt(made.take(), of_group, name, timeout_ms);
}

std::shared_ptr<Communicator> Endpoint::adopt(NewGroup made, const Config& of_group,
                                              const GroupName& name, int64_t timeout_ms) {
  const int rank = static_cast<int>(made.links->rank());
  const int size = static_cast<int>(made.links->world());
  const std::string reach = summarize(linker_->paths(made.token), made.links->world());
  const Log log(config_.log_level, "rank " + std::to_string(rank));
  log.write(LogLevel::Info,
            "joined a group of " + std::to_string(size) + (size > 1 ? "; " : "") + reach);
  const bool spans_hosts = made.ranks_here < made.links->world();
  if (spans_hosts && rank == 0 && !said_reach_.exchange(true)) log.note("sends over " + reach);
  auto group =
      std::make_unique<Group>(clock_, std::move(made.links), transports_->heap(), of_group);
  if (recorder_ != nullptr) {
    group->record_in(
        FlightLog(clock_, recorder_, {.name = name, .rank = rank, .size = size, .reach = reach}));
  }
  const bool is_crowded = static_cast<int>(made.ranks_here) > usable_cores();
  if (config_.spin_us < 0 && is_crowded) progress_->set_spin_us(0);
  const EngineContext context{
      *transports_, *linker_, *sessions_, *progress_, clock_, tuning_, preference_of(of_group)};
  const auto shrink = [this, of_group, name, timeout_ms](NewGroup smaller,
                                                         const RankSet& excluded) {
    return adopt(std::move(smaller), of_group, shrunk(name, excluded), timeout_ms);
  };
  auto shrinking = std::make_unique<Shrinking>(*group, *transports_, *linker_, *progress_, clock_,
                                               of_group, shrink);
  return std::make_shared<Communicator>(std::move(group), made.token, std::move(made.islands),
                                        context, timeout_ms, shared_from_this(),
                                        std::move(shrinking));
}

}  // namespace rdmacoll
