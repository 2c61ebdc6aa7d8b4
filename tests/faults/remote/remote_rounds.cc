// RemoteProcess: what it does over and over until the fault. Floor: tests.
#include "tests/faults/remote/remote_rounds.h"

#include <unistd.h>

#include <algorithm>

#include "tests/faults/remote/remote_process.h"

namespace rdmacoll::faults {
namespace {

constexpr int64_t kPauseUs = 100;
constexpr std::byte value_of_version(uint64_t version) {
  return static_cast<std::byte>(1 + version % 250);
}

}  // namespace

Status RemoteProcess::round() {
  if (rank_ == kOwner) return owner_round();
  if (rank_ == kReader) return reader_round();
  return read_all();
}

Status RemoteProcess::owner_round() {
  if (what_.phase == RemotePhase::Revoke) return expose_and_revoke();
  if (what_.phase == RemotePhase::Subscribe) {
    publish_version();
  } else {
    usleep(kPauseUs);
  }
  return Status();
}

Status RemoteProcess::reader_round() {
  switch (what_.phase) {
    case RemotePhase::Open:
      return open_and_close();
    case RemotePhase::Read:
      return read_all();
    case RemotePhase::Write:
      return write_and_notify();
    case RemotePhase::Subscribe:
      return read_version();
    case RemotePhase::Revoke:
      return read_until_revoked();
    case RemotePhase::Idle:
      usleep(kPauseUs);
  }
  return Status();
}

Result<OpenedPtr> RemoteProcess::open(int rank, const std::string& name, int64_t timeout_ms) {
  return remote_->open(*group_->address_of(rank), "rank " + std::to_string(rank), name, timeout_ms,
                       {});
}

Status RemoteProcess::finish(const WorkPtr& work) {
  constexpr int64_t kAfterItsTimeMs = 100;
  const Status status = remote_->wait(*work, limit_ms() + kAfterItsTimeMs, {});
  if (!work->done()) going_on_ = work;
  return status;
}

Status RemoteProcess::open_and_close() {
  auto opened = open(kOwner, "bytes", limit_ms());
  if (!opened.ok()) return opened.status();
  remote_->close(opened.value());
  return Status();
}

// Of all that it has open.
Status RemoteProcess::read_all() {
  for (const auto& [rank, there] : bytes_of_) {
    if (going_on_ != nullptr) return Status();  // it has the buffer
    std::fill(buffer_.begin(), buffer_.end(), std::byte{0});
    const Status status =
        finish(remote_->read(there, 0, buffer_.data(), buffer_.size(), limit_ms()));
    if (!status.ok()) {
      if (!is_victim() && rank != what_.victim) wrong("it lost another: " + status.message());
      return status;
    }
    if (buffer_ != std::vector<std::byte>(buffer_.size(), value_of(rank))) {
      wrong("it has read what was not there");
    }
  }
  return Status();
}

Status RemoteProcess::write_and_notify() {
  if (going_on_ != nullptr) return Status();
  ++counted_;
  return finish(
      remote_->write(box_of_owner_, 0, buffer_.data(), buffer_.size(), counted_, limit_ms()));
}

Status RemoteProcess::read_version() {
  if (going_on_ != nullptr) return Status();
  const auto version = std::make_shared<uint64_t>(0);
  const Status status =
      finish(remote_->snapshot(model_of_owner_, buffer_.data(), kModelBytes,
                               {{.bytes = kModelBytes}}, counted_, version, limit_ms()));
  if (!status.ok() || *version == 0) return status;
  counted_ = *version;
  const auto is_of_it = [&](std::byte byte) { return byte == value_of_version(counted_); };
  if (!std::all_of(buffer_.begin(), buffer_.begin() + kModelBytes, is_of_it)) {
    wrong("it has read parts of versions");
  }
  return Status();
}

void RemoteProcess::publish_version() {
  std::fill_n(model_->begin(), kModelBytes, value_of_version(model_->version() + 1));
  model_->complete();
}

// It is opened between the two, or not.
Status RemoteProcess::expose_and_revoke() {
  const Status exposed = remote_->expose({.name = "revoked", .bytes = kRemoteBytes}, bytes_, 0);
  if (!exposed.ok()) wrong(exposed.message());
  usleep(kPauseUs);
  auto late = remote_->revoke("revoked", limit_ms(), {});
  if (!late.status().ok() || late.value().empty()) return late.status();
  return Status(StatusCode::Timeout, late.value()[0] + " has not stopped in time");
}

Status RemoteProcess::read_until_revoked() {
  constexpr int64_t kExposedWithinMs = 50;  // or not, as its owner has had his fault
  auto opened = open(kOwner, "revoked", kExposedWithinMs);
  if (opened.status().code() == StatusCode::Timeout) return Status();
  if (!opened.ok()) return opened.status();
  Status status;
  // An owner that is stopped before it revokes can be read for ever.
  while (status.ok() && going_on_ == nullptr && shared_.fault_ns == 0) {
    status = finish(remote_->read(opened.value(), 0, buffer_.data(), buffer_.size(), limit_ms()));
  }
  remote_->close(opened.value());
  return status.code() == StatusCode::Aborted ? Status() : status;
}

}  // namespace rdmacoll::faults
