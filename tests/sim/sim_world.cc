// SimWorld. Floor: tests. Thread: one.
#include "tests/sim/sim_world.h"

#include <algorithm>

#include "csrc/plan/selection/select.h"

namespace rdmacoll {
namespace {

// Small slots: many tiles from few bytes, and every ring of slots goes round. With many ranks they
// must hold a line for each; between hosts, for each two ranks of different ones.
constexpr uint64_t kSlotBytes = 256;
constexpr uint64_t kStageBytes = 2048;
constexpr uint32_t kFewRanks = 9;
constexpr uint64_t kSlotBytesOfHosts = kFewRanks / 2 * (kFewRanks - kFewRanks / 2) * kLineBytes;

Layout small_layout(uint32_t world, bool with_hosts) {
  return world <= kFewRanks
             ? Layout(world, with_hosts ? kSlotBytesOfHosts : kSlotBytes, kStageBytes)
             : Layout(world, kSlotBytesMin, world * kLineBytes);
}

constexpr int64_t kTimeoutMs = 1000;  // of virtual time

// Of the network that steps.
SimOptions first_network(SimOptions options) {
  if (!options.hosts.empty()) options.mapped = true;
  return options;
}

std::unique_ptr<SimNetwork> network_between_hosts(SimNetwork& beside, SimOptions options) {
  if (options.hosts.empty()) return nullptr;
  options.hosts.clear();
  options.mapped = false;
  return std::make_unique<SimNetwork>(beside, options);
}

}  // namespace

Config small_heaps() {
  Config config;
  config.log_level = LogLevel::Error;
  config.heap_bytes = 32 << 10;
  config.zero_copy_local_bytes = config.zero_copy_remote_bytes = 128;
  return config;
}

SimWorld::SimWorld(uint64_t seed, const SimOptions& options, const Config& config)
    : random_(seed),
      network_(seed, first_network(options)),
      between_hosts_(network_between_hosts(network_, options)),
      config_(config) {
  const auto world = static_cast<uint32_t>(options.world);
  std::vector<GroupSetup> setups;
  std::vector<std::string> records;
  for (uint32_t r = 0; r < world; ++r) {
    transports_.push_back(transports_of(static_cast<int>(r), options.hosts));
    auto heap = Heap::create(config);
    RDMACOLL_CHECK(heap.ok() && transports_.back()->adopt_heap(heap.take()).ok());
    linkers_.push_back(
        std::make_unique<Linker>(*transports_.back(), network_.clock(), AlarmFd::create().take()));
    auto setup = GroupSetup::begin(*transports_.back(), *linkers_.back(), network_.clock(), config,
                                   small_layout(world, between_hosts_ != nullptr), r, world);
    RDMACOLL_CHECK(setup.ok());
    setups.push_back(setup.take());
    records.push_back(setups.back().record());
    drivers_.push_back(std::make_unique<Driver>());
    sessions_.push_back(std::make_unique<Sessions>(*transports_.back(), *linkers_.back(),
                                                   *drivers_.back(), network_.clock()));
  }
  // Some groups know all their ranks from the start; in others a rank has met its neighbours alone.
  const bool in_rings = draw(2) == 0;
  for (uint32_t r = 0; r < world; ++r) {
    const std::vector<uint32_t> ring{(r + 1) % world, (r + world - 1) % world};
    const bool is_alone = world == 1;
    RDMACOLL_CHECK(
        setups[r].meet(records, in_rings && !is_alone ? ring : first_to_meet(r, world)).ok());
  }
  for (uint32_t r = 0; r < world; ++r) {
    auto made = setups[r].finish(Deadline{0});
    while (made.status().code() == StatusCode::Timeout) {
      step();
      made = setups[r].finish(Deadline{0});
    }
    RDMACOLL_CHECK(made.ok());
    ranks_.push_back(adopt(static_cast<int>(r), made.take()));
  }
}

std::unique_ptr<Transports> SimWorld::transports_of(int r, const std::vector<int>& hosts) {
  std::vector<Transport*> transports{&network_.transport(r)};
  std::string host = "simulation";
  if (between_hosts_ != nullptr) {
    transports.push_back(&between_hosts_->transport(r));
    host = std::to_string(hosts[static_cast<size_t>(r)]);
  }
  return std::make_unique<Transports>(transports, Transports::Host{host, host}, config_,
                                      network_.clock());
}

EngineContext SimWorld::context(int r) {
  const auto rank = static_cast<size_t>(r);
  return {*transports_[rank],
          *linkers_[rank],
          *sessions_[rank],
          *drivers_[rank],
          network_.clock(),
          tuning_,
          algorithm_by_name(config_.algorithm)};
}

std::shared_ptr<Communicator> SimWorld::adopt(int r, NewGroup made) {
  auto group = std::make_unique<Group>(network_.clock(), std::move(made.links),
                                       transports_[static_cast<size_t>(r)]->heap(), config_);
  Group& adopted = *group;
  auto communicator =
      std::make_shared<Communicator>(std::move(group), made.token, std::move(made.islands),
                                     context(r), kTimeoutMs, nullptr, nullptr);
  groups_[communicator.get()] = &adopted;
  return communicator;
}

std::unique_ptr<Shrinking> SimWorld::shrinking_of(int r, Communicator& group,
                                                  Shrinking::Make make) {
  const auto rank = static_cast<size_t>(r);
  return std::make_unique<Shrinking>(*groups_.at(&group), *transports_[rank], *linkers_[rank],
                                     *drivers_[rank], network_.clock(), config_, std::move(make));
}

std::vector<Heap*> SimWorld::heaps() const {
  std::vector<Heap*> heaps;
  for (const auto& transports : transports_) heaps.push_back(transports->heap());
  return heaps;
}

void SimWorld::step() {
  const auto r = static_cast<size_t>(draw(drivers_.size()));
  if (drivers_[r]->runs()) {
    drivers_[r]->round(draw(8) == 0);
    if (draw(4) == 0 && !holds_links_) linkers_[r]->turn();
  }
  ++rounds_;
  // A rank may do several rounds before anything arrives, or the other way round.
  for (uint64_t steps = draw(4); steps > 0; --steps) {
    if (!network_.step()) network_.advance(1000);
  }
}

bool SimWorld::run(const std::vector<WorkPtr>& works) {
  // With nothing in flight for this long, time runs to the deadline and the works fail instead.
  const uint64_t limit = rounds_ + 4'000'000;
  const auto all_done = [&] {
    return std::all_of(works.begin(), works.end(), [](const WorkPtr& w) { return w->done(); });
  };
  while (!all_done()) {
    for (int i = 0; i < 16; ++i) step();
    if (rounds_ > limit) return false;
  }
  return true;
}

bool SimWorld::run_until(const std::function<bool()>& holds) {
  constexpr int kBursts = 3'000, kSteps = 100;
  constexpr int kInRealTime = 300;  // bursts, before time flies from one to the next
  for (int burst = 0; burst < kBursts; ++burst) {
    for (int i = 0; i < kSteps; ++i) step();
    if (holds()) return true;
    if (burst > kInRealTime) network_.advance(kTimeoutMs * 1'000'000 / 200);
  }
  return false;
}

void SimWorld::kill(int r) {
  drivers_[static_cast<size_t>(r)]->die();
  network_.kill(r);
  if (between_hosts_ != nullptr) between_hosts_->kill(r);
}

void SimWorld::Driver::remove(Driven& one) {
  std::vector<Completion> finished;
  if (!dead_) one.close(finished);
  settle(finished);
  std::erase(driven_, &one);
}

Status SimWorld::Driver::wait(std::span<Work* const>, int64_t, const InterruptCheck&) {
  return Status(StatusCode::Unsupported, "the simulated world is driven from outside");
}

void SimWorld::Driver::round(bool check) {
  std::vector<Completion> finished;
  for (Driven* one : driven_) {
    one->beat();
    if (!one->idle()) one->advance(finished);
    if (check) one->check(finished);
  }
  settle(finished);
}

void SimWorld::Driver::settle(std::vector<Completion>& finished) {
  for (Completion& completion : finished) {
    for (const auto& callback : completion.work->finish(completion.status)) {
      callback(completion.status);
    }
  }
}

void SimWorld::set_timeouts_ms(int64_t timeout_ms) {
  for (const auto& rank : ranks_) rank->set_timeout_ms(timeout_ms);
}

std::unique_ptr<SimWorld> patient_world(uint64_t seed, std::mt19937_64& random,
                                        int64_t stall_timeout_ms) {
  SimOptions options;
  options.world = 2 + static_cast<int>(random() % 5);
  options.mapped = random() % 2 == 0;
  Config config = small_heaps();
  config.stall_timeout_ms = stall_timeout_ms;
  auto world = std::make_unique<SimWorld>(seed, options, config);
  world->set_timeouts_ms(kHourMs);
  return world;
}

}  // namespace rdmacoll
