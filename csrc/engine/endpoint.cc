// Endpoint. Floor: engine. Thread: any.
#include "csrc/engine/endpoint.h"

#include <sched.h>

#include <algorithm>

#include "csrc/engine/group_setup.h"
#include "csrc/plan/select.h"
#include "csrc/transport/shm/shm_transport.h"

namespace rdmacoll {
namespace {

// A peer that runs answers within this time; then its turn on this very core may be what it waits
// for, and a yield costs next to nothing. With more ranks than cores that is so from the start.
constexpr int64_t kSpinUs = 5;

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

Endpoint::Endpoint(const Config& config) : config_(config) {}

Result<std::shared_ptr<Endpoint>> Endpoint::open(const Config& config) {
  std::shared_ptr<Endpoint> endpoint(new Endpoint(config));
  auto transport = ShmTransport::open(config, endpoint->clock_);
  if (!transport.ok()) return transport.status();
  endpoint->transport_ = transport.take();
  const int64_t spin_us = config.spin_us >= 0 ? config.spin_us : kSpinUs;
  endpoint->progress_ =
      std::make_unique<ThreadProgress>(*endpoint->transport_, endpoint->clock_, spin_us);
  return endpoint;
}

Endpoint::~Endpoint() {
  progress_.reset();
  if (transport_ != nullptr) transport_->shutdown();
}

Result<std::shared_ptr<Communicator>> Endpoint::create_communicator(int rank, int size,
                                                                    Bootstrap& bootstrap,
                                                                    int64_t timeout_ms) {
  if (size < 1 || size > static_cast<int>(kMaxWorld)) {
    return Status(StatusCode::InvalidArgument, "size=" + std::to_string(size) +
                                                   " is not possible; a group has 1 to " +
                                                   std::to_string(kMaxWorld) + " ranks");
  }
  if (rank < 0 || rank >= size) {
    return Status(StatusCode::InvalidArgument,
                  "rank=" + std::to_string(rank) + " is not in a group of " + std::to_string(size));
  }
  const int64_t limit_ms = std::min(timeout_ms, config_.connect_timeout_ms);
  auto group =
      set_up_group(*transport_, clock_, config_, static_cast<uint32_t>(rank),
                   static_cast<uint32_t>(size), bootstrap, Deadline::after_ms(clock_, limit_ms));
  if (!group.ok()) return group.status();
  Log(config_.log_level, "rank " + std::to_string(rank))
      .write(LogLevel::Info, "joined a group of " + std::to_string(size) + "; its other " +
                                 std::to_string(size - 1) +
                                 " ranks are on this host and reached by " + transport_->name());
  if (config_.spin_us < 0 && size > usable_cores()) progress_->set_spin_us(0);
  const Ground ground{*transport_, *progress_, clock_, algorithm_by_name(config_.algorithm)};
  return std::make_shared<Communicator>(group.take(), ground, timeout_ms, shared_from_this());
}

}  // namespace rdmacoll
