// RemoteProcess: its life. Floor: tests.
#include "tests/faults/remote/remote_process.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/faults/remote/remote_rounds.h"
#include "tests/faults/strike.h"
#include "tests/processes/holdings.h"

namespace rdmacoll::faults {
namespace {

constexpr int64_t kFaultWithinUs = 5000;

int64_t now_ns() { return SteadyClock().now_ns(); }

}  // namespace

void RemoteProcess::run() {
  const Holdings before;
  join();
  meet(kRemoteRoles);
  open_others();
  meet(kRemoteRoles);
  go_until_the_fault();
  if (!is_victim()) {
    raised(what_.fault == Fault::Stop ? see_the_stop() : see_the_end());
  } else if (what_.fault == Fault::Stop) {
    raised(Status());
    shared_.woken = true;
  }
  if (!is_victim() || what_.fault == Fault::Stop) go_on();
  end();
  if (const std::string left = not_as(before); !left.empty()) wrong(left);
  _exit(0);
}

void RemoteProcess::join() {
  auto config = Config::from_environment();
  if (!config.ok()) wrong(config.status().message());
  config.value().log_level = LogLevel::Error;
  config.value().transport = what_.transport;
  auto endpoint = Endpoint::open(config.value());
  if (!endpoint.ok()) wrong(endpoint.status().message());
  endpoint_ = endpoint.take();
  MeetingBootstrap meeting(shared_.meeting, rank_, kRemoteRoles);
  auto made = endpoint_->create_communicator(rank_, kRemoteRoles, meeting, kFarMs);
  if (!made.ok()) wrong(made.status().message());
  group_ = made.take();
  const EngineContext& context = group_->context();
  remote_ = std::make_unique<Remote>(RemoteContext{
      context.transports, context.sessions, context.progress, context.clock, group_->keeps()});
  const auto allocate = [&](uint64_t bytes, Others others) {
    auto memory = remote_->allocate(bytes, others);
    if (!memory.ok()) wrong(memory.status().message());
    return memory.take();
  };
  const auto expose = [&](ExposureInfo info, const RemoteMemoryPtr& memory) {
    const Status done = remote_->expose(std::move(info), memory, 0);
    if (!done.ok()) wrong(done.message());
  };
  bytes_ = allocate(kRemoteBytes, Others::OnlyRead);
  std::fill_n(bytes_->data(), kRemoteBytes, value_of(rank_));
  expose({.name = "bytes", .bytes = kRemoteBytes}, bytes_);
  box_ = allocate(kRemoteBytes, Others::Write);
  expose({.name = "box", .bytes = kRemoteBytes, .is_writable = true}, box_);
  const auto versions = allocate(versions_bytes(kModelBytes), Others::OnlyRead);
  expose({.name = "model", .bytes = kModelBytes, .has_versions = true}, versions);
  model_.emplace(versions, 0, kModelBytes);
  buffer_.resize(kRemoteBytes);
}

void RemoteProcess::open_others() {
  const auto opened = [&](int rank, const char* name) {
    auto there = open(rank, name, kFarMs);
    if (!there.ok()) wrong(there.status().message());
    return there.take();
  };
  for (int other = 0; other < kRemoteRoles; ++other) {
    if (other != rank_) bytes_of_[other] = opened(other, "bytes");
  }
  if (rank_ != kReader) return;
  box_of_owner_ = opened(kOwner, "box");
  model_of_owner_ = opened(kOwner, "model");
}

// So many come each time; who has been struck does not.
void RemoteProcess::meet(int processes) {
  met_ += processes;
  ++shared_.ready;
  until("the others to come", [&] { return shared_.ready >= met_; });
}

void RemoteProcess::go_until_the_fault() {
  std::thread fault;
  if (is_victim()) fault = std::thread([this] { strike_soon(); });
  while (shared_.fault_ns == 0) {
    const Status status = round();
    if (status.ok() || is_victim()) continue;
    if (shared_.fault_ns == 0) wrong("it failed before the fault: " + status.message());
    check_error(status);
  }
  if (fault.joinable()) fault.join();
}

void RemoteProcess::strike_soon() {
  const auto us = static_cast<int64_t>(random_() % static_cast<uint64_t>(kFaultWithinUs));
  std::this_thread::sleep_for(std::chrono::microseconds(us));
  shared_.victim_pid = getpid();
  shared_.fault_ns = now_ns();
  faults::strike(what_.fault);  // the main thread leaves
}

void RemoteProcess::go_on() {
  if (what_.fault == Fault::Stop) until("the victim to wake", [&] { return shared_.woken.load(); });
  take_the_buffer_back();
  const std::vector<int> left = survivors();
  if (what_.fault == Fault::Stop) see_what_is_open();
  read_and_write(left);
  check_the_buffer();
  meet(static_cast<int>(left.size()));
}

void RemoteProcess::end() {
  box_of_owner_ = model_of_owner_ = nullptr;
  bytes_of_.clear();
  model_.reset();
  bytes_ = box_ = nullptr;
  remote_.reset();
  group_.reset();
  endpoint_.reset();
}

std::vector<int> RemoteProcess::survivors() const {
  std::vector<int> all;
  for (int rank = 0; rank < kRemoteRoles; ++rank) {
    if (rank != what_.victim || what_.fault == Fault::Stop) all.push_back(rank);
  }
  return all;
}

void RemoteProcess::wrong(const std::string& text) {
  shared_.ranks[rank_].outcome = Outcome::Wrong;
  std::snprintf(shared_.ranks[rank_].text, kTextBytes, "%s", text.c_str());
  _exit(1);
}

void RemoteProcess::raised(const Status& status) {
  Shared::Rank& mine = shared_.ranks[rank_];
  mine.raised_ns = now_ns();
  std::snprintf(mine.text, kTextBytes, "%s", status.message().c_str());
  mine.outcome = Outcome::Raised;
  if (!is_victim()) ++shared_.raised;
}

void RemoteProcess::until(const char* what, const std::function<bool()>& holds) {
  const int64_t give_up_ns = now_ns() + kFarMs * 1'000'000;
  while (!holds()) {
    if (now_ns() > give_up_ns) wrong(std::string("it has waited in vain for ") + what);
    usleep(100);
  }
}

}  // namespace rdmacoll::faults
