// RemoteProcess: what survivors must see, and what must still go. Floor: tests.
#include <algorithm>

#include "tests/faults/remote/remote_process.h"
#include "tests/faults/remote/remote_rounds.h"
#include "tests/processes/stopped.h"

namespace rdmacoll::faults {
namespace {

constexpr std::byte kMine{0x5A};
constexpr uint64_t kPageBytes = 4096;

}  // namespace

int64_t RemoteProcess::limit_ms() const { return what_.fault == Fault::Stop ? kNearMs : kFarMs; }

void RemoteProcess::check_error(const Status& status) {
  const bool leaves = what_.fault == Fault::Leave;  // and takes its memory back before
  const StatusCode expected =
      what_.fault == Fault::Stop ? StatusCode::Timeout : StatusCode::PeerFailed;
  if (status.code() != expected && !(leaves && status.code() == StatusCode::Aborted)) {
    wrong(std::string("it raised ") + status_code_name(status.code()) + ": " + status.message());
  }
  // A wait that is over before its work knows of no peer.
  if (going_on_ != nullptr || status.message().find(victim_name()) != std::string::npos) return;
  wrong("its error does not name " + victim_name() + ": " + status.message());
}

Status RemoteProcess::see_the_end() {
  const OpenedPtr there = bytes_of_.at(what_.victim);
  Status status;
  std::vector<std::byte> got(100'000);
  until("an error", [&] {
    const WorkPtr read = remote_->read(there, 0, got.data(), got.size(), kFarMs);
    status = remote_->wait(*read, -1, {});
    return !status.ok();
  });
  check_error(status);
  const auto again = open(what_.victim, "bytes", kFarMs);
  if (again.ok()) wrong("it has opened memory of a process that is gone");
  check_error(again.status());
  until("what the victim had open to be dropped", [&] { return remote_->stats().openings == 1; });
  return status;
}

// What needs its program, or its threads, is over in time. Data may come: they are nobody's work.
Status RemoteProcess::see_the_stop() {
  until("the victim to stand still", [&] { return is_stopped(shared_.victim_pid); });
  const OpenedPtr there = bytes_of_.at(what_.victim);
  const bool is_mapped = there->session->link().slab.base != nullptr;  // so a fence asks nobody
  const Status fenced = remote_->wait(*remote_->fence(there, kNearMs), -1, {});
  if (!is_mapped) check_error(fenced);
  const Status status = open(what_.victim, "box", kNearMs).status();
  check_error(status);
  return status;
}

// What failed has ended. What was under way when its time was over ends with the stop.
void RemoteProcess::take_the_buffer_back() {
  if (going_on_ != nullptr) {
    const Status ended = remote_->wait(*going_on_, kFarMs, {});
    if (!going_on_->done()) wrong("what was under way has not ended: " + ended.message());
  }
  std::fill(buffer_.begin(), buffer_.end(), kMine);
}

void RemoteProcess::check_the_buffer() {
  if (!std::ranges::all_of(buffer_, [](std::byte byte) { return byte == kMine; })) {
    wrong("something landed in memory that was given back");
  }
}

void RemoteProcess::see_what_is_open() {
  const uint64_t openings = rank_ == kOwner ? 4 : 2;  // of its bytes, and of its box and model
  until("what nobody has open to be closed", [&] { return remote_->stats().openings == openings; });
}

void RemoteProcess::read_and_write(const std::vector<int>& others) {
  const auto must = [&](const Status& status) {
    if (!status.ok()) wrong("it cannot go on: " + status.message());
  };
  const auto finish = [&](const WorkPtr& work) { must(remote_->wait(*work, -1, {})); };
  auto made = remote_->allocate(kRemoteRoles * kPageBytes, Others::Write);
  must(made.status());
  const RemoteMemoryPtr mine = made.take();
  must(remote_->expose({.name = "after", .bytes = mine->bytes(), .is_writable = true}, mine, 0));
  std::vector<std::byte> got(kRemoteBytes);
  const std::vector<std::byte> given(kPageBytes, value_of(rank_));
  for (const int other : others) {
    if (other == rank_) continue;
    finish(remote_->read(bytes_of_.at(other), 0, got.data(), got.size(), kFarMs));
    if (got != std::vector<std::byte>(got.size(), value_of(other))) wrong("it has read nonsense");
    auto after = open(other, "after", kFarMs);
    must(after.status());
    const uint64_t offset = static_cast<uint64_t>(rank_) * kPageBytes;
    finish(remote_->write(after.value(), offset, given.data(), kPageBytes, 1, kFarMs));
    finish(remote_->fence(after.value(), kFarMs));
  }
  meet(static_cast<int>(others.size()));
  for (const int other : others) {
    const std::byte* const page = mine->data() + static_cast<uint64_t>(other) * kPageBytes;
    const std::byte expected = other == rank_ ? std::byte{0} : value_of(other);
    if (!std::all_of(page, page + kPageBytes, [&](std::byte b) { return b == expected; })) {
      wrong("rank " + std::to_string(other) + " has not written");
    }
  }
  if (remote_->notified("after").value() != 1) wrong("nobody has notified");
}

}  // namespace rdmacoll::faults
