// Rank. Floor: tests. Thread: the process's main one; a fault inside an operation has its own.
#include "tests/faults/rank.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "csrc/engine/endpoint.h"
#include "tests/faults/buffers.h"
#include "tests/faults/strike.h"
#include "tests/processes/holdings.h"

namespace rdmacoll::faults {
namespace {

constexpr int kRoundsBefore = 3;
constexpr int64_t kFaultWithinUs = 5000;  // of the first round that may be hit
// Deadlines of operations: far off, but where it takes one to notice.
constexpr int64_t kFarMs = 60'000;
constexpr int64_t kNearMs = 500;
constexpr int64_t kLostMs = 20'000;  // who has not raised by then does not notice

int64_t now_ns() { return SteadyClock().now_ns(); }

class Process {
 public:
  Process(const Case& what, int rank, uint64_t seed, Shared& shared)
      : what_(what), rank_(rank), random_(seed), shared_(shared) {}

  [[noreturn]] void run() {
    const Holdings before;
    open();
    make_group();
    {
      Buffers buffers(*group_);
      go_round(buffers);
      after(buffers);
    }
    group_.reset();
    endpoint_.reset();
    if (const std::string left = not_as(before); !left.empty()) wrong(left);
    _exit(0);
  }

 private:
  bool is_victim() const { return rank_ == what_.victim; }

  [[noreturn]] void wrong(const std::string& text) {
    shared_.ranks[rank_].outcome = Outcome::Wrong;
    std::snprintf(shared_.ranks[rank_].text, kTextBytes, "%s", text.c_str());
    _exit(1);
  }

  void open() {
    auto config = Config::from_environment();
    if (!config.ok()) wrong(config.status().message());
    config.value().log_level = LogLevel::Error;
    config.value().zero_copy_local_bytes = 1024;
    auto endpoint = Endpoint::open(config.value());
    if (!endpoint.ok()) wrong(endpoint.status().message());
    endpoint_ = endpoint.take();
  }

  void make_group() {
    // One that dies while they meet has given its record, but answers nobody.
    class Dying final : public Bootstrap {
     public:
      explicit Dying(Process& process) : process_(process) {}
      Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline) override {
        MeetingBootstrap(process_.shared_.meeting, process_.rank_, process_.what_.world).give(mine);
        process_.strike();
        return Status(StatusCode::Aborted, "");
      }
      void decline(const std::string&) override {}

     private:
      Process& process_;
    } dying(*this);
    MeetingBootstrap meeting(shared_.meeting, rank_, what_.world);
    const bool dies = is_victim() && what_.phase == Phase::Meeting;
    Bootstrap& bootstrap = dies ? static_cast<Bootstrap&>(dying) : meeting;
    auto made = endpoint_->create_communicator(rank_, what_.world, bootstrap, kFarMs);
    if (what_.phase == Phase::Meeting) {
      if (made.ok()) wrong("a group was made with a rank that is dead");
      raised(made.status());
      _exit(0);
    }
    if (!made.ok()) wrong(made.status().message());
    group_ = made.take();
  }

  void go_round(Buffers& buffers) {
    for (int round = 0; round < kRoundsBefore; ++round) {
      const Status status = one_round(buffers);
      if (!status.ok()) wrong(status.message());
    }
    meet();
    group_->set_timeout_ms(what_.fault == Fault::Stop ? kNearMs : kFarMs);
    std::thread fault;
    if (is_victim() && what_.phase == Phase::Between) strike();
    if (is_victim() && what_.phase == Phase::Inside) fault = std::thread([this] { strike_soon(); });
    const int64_t give_up_ns = now_ns() + kLostMs * 1'000'000;
    Status status;
    while (status.ok()) {
      status = one_round(buffers);
      if (now_ns() > give_up_ns) wrong("it never raised");
    }
    if (fault.joinable()) fault.join();
    raised(status);
  }

  // What one rank has ended another may still be in, and it would fail there.
  void meet() {
    ++shared_.ready;
    while (shared_.ready < what_.world) usleep(100);
  }

  Status one_round(Buffers& buffers) {
    auto work = buffers.start(what_.collective, *group_);
    return work.ok() ? group_->wait(*work.value(), -1, {}) : work.status();
  }

  void strike_soon() {
    const auto us = static_cast<int64_t>(random_() % static_cast<uint64_t>(kFaultWithinUs));
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    strike();
  }

  void strike() {
    shared_.fault_ns = now_ns();
    if (what_.fault == Fault::Leave) group_->leave("it has had enough");
    faults::strike(what_.fault);
  }

  void raised(const Status& status) {
    Shared::Rank& mine = shared_.ranks[rank_];
    mine.raised_ns = now_ns();
    std::snprintf(mine.text, kTextBytes, "%s", status.message().c_str());
    mine.outcome = Outcome::Raised;
    if (!is_victim()) ++shared_.raised;
  }

  // The group is over, the process and its memory are not.
  void after(Buffers& buffers) {
    buffers.overwrite();
    if (group_->barrier().ok()) wrong("the group took another operation");
    if (is_victim()) {
      shared_.woken = true;
      return;
    }
    while (what_.fault == Fault::Stop && !shared_.woken) usleep(1000);
    if (!buffers.is_overwritten()) wrong("something landed in memory that was given back");
    if (what_.world > 2) work_without_victim();
  }

  void work_without_victim() {
    const int survivors = what_.world - 1;
    const int rank = rank_ < what_.victim ? rank_ : rank_ - 1;
    MeetingBootstrap bootstrap(shared_.of_survivors, rank, survivors);
    auto made = endpoint_->create_communicator(rank, survivors, bootstrap, kFarMs);
    if (!made.ok()) wrong("no group of survivors: " + made.status().message());
    std::vector<float> data(10'000, static_cast<float>(rank));
    auto work = made.value()->all_reduce(data.data(), data.data(), data.size(), DType::Float32,
                                         ReduceOp::Sum);
    const Status status = work.ok() ? made.value()->wait(*work.value(), -1, {}) : work.status();
    if (!status.ok()) wrong("the survivors cannot work: " + status.message());
    const auto sum = static_cast<float>(survivors * (survivors - 1) / 2);
    if (data != std::vector<float>(data.size(), sum)) wrong("the survivors' sum is wrong");
  }

  const Case what_;
  const int rank_;
  std::mt19937_64 random_;
  Shared& shared_;
  std::shared_ptr<Endpoint> endpoint_;
  std::shared_ptr<Communicator> group_;
};

}  // namespace

void run_rank(const Case& what, int rank, uint64_t seed, Shared& shared) {
  Process(what, rank, seed, shared).run();
}

}  // namespace rdmacoll::faults
