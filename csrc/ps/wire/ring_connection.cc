// RingConnection. Floor: ps/wire. Thread: one.
#include "csrc/ps/wire/ring_connection.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"

namespace rdmacoll::ps {
namespace {

// Nobody waits for what is written as long as that; but a write that fails ends the connection.
constexpr int64_t kWriteMs = 600'000;
// The other may be ending, too; it is cut off then.
constexpr int64_t kRingRevokeMs = 50;

}  // namespace

Result<std::unique_ptr<RingConnection>> RingConnection::make(Remote& remote,
                                                             const std::string& name) {
  auto ring = remote.allocate(kRingBytes, Others::Write);
  if (!ring.ok()) return ring.status();
  RDMACOLL_RETURN_IF_ERROR(
      remote.expose({.name = name, .bytes = kRingBytes, .is_writable = true}, ring.value(), 0));
  return std::unique_ptr<RingConnection>(new RingConnection(remote, name, ring.take()));
}

RingConnection::RingConnection(Remote& remote, std::string name, RemoteMemoryPtr ring)
    : remote_(remote),
      name_(std::move(name)),
      ring_(std::move(ring)),
      exposed_(remote.exposed(name_)) {}

RingConnection::~RingConnection() {
  use_.reset();
  if (theirs_ != nullptr) remote_.close(theirs_);
  static_cast<void>(remote_.revoke(name_, kRingRevokeMs, {}));
}

Status RingConnection::open(const std::string& address, const std::string& who,
                            const std::string& ring, int64_t timeout_ms,
                            const InterruptCheck& interrupt) {
  auto theirs = remote_.open(address, who, ring, timeout_ms, interrupt);
  if (!theirs.ok()) return theirs.status();
  theirs_ = theirs.take();
  if (theirs_->info.bytes != kRingBytes || !theirs_->info.is_writable || !theirs_->as.line) {
    return Status(StatusCode::InvalidArgument, "what " + who + " exposes as '" + ring +
                                                   "' is no ring; install the same rdmacoll there");
  }
  use_ = theirs_->use();
  if (use_ == nullptr) return theirs_->why_not();
  if (use_->memory->region.base != nullptr) return Status();
  auto stage = remote_.allocate(kRingBytes, Others::OnlyRead);
  if (!stage.ok()) return stage.status();
  stage_ = stage.take();
  return Status();
}

void RingConnection::fail(const std::string& why) {
  if (has_failed_.load(std::memory_order_relaxed)) return;
  failed_ = Status(StatusCode::PeerFailed, theirs_->who + " " + why);
  has_failed_.store(true, std::memory_order_release);
}

Status RingConnection::failure() const {
  return has_failed_.load(std::memory_order_acquire) ? failed_ : theirs_->failure();
}

// --- what comes ----------------------------------------------------------------------------------

bool RingConnection::has_news() const {
  return exposed_->notified() * kLineBytes > read_.load(std::memory_order_relaxed) ||
         !theirs_->failure().ok();
}

bool RingConnection::take(Record& record) {
  const uint64_t come = exposed_->notified() * kLineBytes;
  uint64_t read = read_.load(std::memory_order_relaxed);
  while (read < come && !has_failed_.load(std::memory_order_relaxed)) {
    const std::byte* const place = ring_->data() + read % kRingBytes;
    std::memcpy(&record.head, place, sizeof(record.head));
    const RecordHead& head = record.head;
    const uint64_t bytes = kLineBytes + padded(head.bytes);
    const bool fits = bytes <= come - read && bytes <= kRingBytes - read % kRingBytes;
    if (!fits || head.kind > kLastRecordKind || head.freed < their_freed_ ||
        head.freed > written_) {
      fail("has sent what makes no sense");
      return false;
    }
    their_freed_ = head.freed;
    read += bytes;
    read_.store(read, std::memory_order_relaxed);
    taken_.push_back({read, false});
    record.end = read;
    if (head.kind == RecordKind::Skip) {
      give_back(record);
      continue;
    }
    record.body = {place + kLineBytes, head.bytes};
    return true;
  }
  return false;
}

void RingConnection::give_back(const Record& record) {
  for (Taken& taken : taken_) {
    if (taken.end == record.end) taken.is_given_back = true;
  }
  while (!taken_.empty() && taken_.front().is_given_back) {
    freed_ = taken_.front().end;
    taken_.pop_front();
  }
}

// --- what goes -----------------------------------------------------------------------------------

std::byte* RingConnection::at(uint64_t position) const {
  std::byte* const ring =
      stage_ != nullptr ? stage_->data() : use_->memory->region.base + theirs_->as.offset;
  return ring + position % kRingBytes;
}

// A record lies in one piece: where the end of the ring is too near it begins at the beginning.
std::byte* RingConnection::room(uint64_t body_bytes) {
  while (!writes_.empty() && writes_.front()->done()) {
    const Status status = writes_.front()->status();
    writes_.pop_front();
    if (!status.ok()) fail("cannot be written to: " + status.message());
  }
  const uint64_t bytes = kLineBytes + padded(body_bytes);
  RDMACOLL_CHECK(bytes <= kRingBytes);
  const uint64_t left = kRingBytes - written_ % kRingBytes;
  const uint64_t skipped = bytes <= left ? 0 : left;
  const uint64_t free_to = std::min(their_freed_, kept_from_);
  if (written_ + skipped + bytes - free_to > kRingBytes) return nullptr;
  if (skipped > 0) {
    const RecordHead skip{.bytes = static_cast<uint32_t>(skipped - kLineBytes), .freed = freed_};
    std::memcpy(at(written_), &skip, sizeof(skip));
    publish(sizeof(skip), skipped);  // what is skipped would be a third of all that is sent
  }
  return at(written_) + kLineBytes;
}

uint64_t RingConnection::send(const RecordHead& head) {
  const uint64_t from = written_;
  RecordHead said = head;
  said.freed = freed_;
  std::memcpy(at(from), &said, sizeof(said));
  const uint64_t bytes = kLineBytes + padded(head.bytes);
  publish(bytes, bytes);
  return from;
}

void RingConnection::publish(uint64_t bytes, uint64_t as_bytes) {
  const uint64_t from = written_;
  written_ += as_bytes;
  const uint64_t notify = written_ / kLineBytes;
  if (stage_ == nullptr) {
    writes_.push_back(remote_.write(theirs_, 0, nullptr, 0, notify, kWriteMs));
  } else {
    writes_.push_back(remote_.write(theirs_, from % kRingBytes, at(from), bytes, notify, kWriteMs));
  }
}

}  // namespace rdmacoll::ps
