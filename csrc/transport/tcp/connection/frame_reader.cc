// FrameReader. Floor: transport/tcp/connection. Thread: the driver.
#include "csrc/transport/tcp/connection/frame_reader.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "csrc/base/check.h"

namespace rdmacoll::tcp {

FrameReader::Read FrameReader::read(int fd, FrameTaker& taker) {
  RDMACOLL_CHECK(!waits_ && filled_ < kBufferBytes);
  iovec parts[2];
  int count = 0;
  const size_t in_place = payload_ != nullptr ? payload_left_ : 0;
  if (in_place > 0) parts[count++] = {payload_, in_place};
  parts[count++] = {buffer_->data() + filled_, kBufferBytes - filled_};
  const ssize_t got = ::readv(fd, parts, count);
  if (got == 0) return Read::Ended;
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Read::Empty : Read::Failed;
  const auto bytes = static_cast<size_t>(got);
  const bool is_all = bytes == in_place + kBufferBytes - filled_;
  const size_t direct = std::min(bytes, in_place);
  filled_ += bytes - direct;
  if (payload_left_ > 0) {
    take_payload(direct, taker);
    if (payload_ == nullptr) drop_from_buffer(taker);
  }
  if (!parse(taker)) return Read::Broken;
  return is_all && !waits_ ? Read::More : Read::Empty;
}

void FrameReader::take_payload(size_t bytes, FrameTaker& taker) {
  if (payload_ != nullptr) payload_ += bytes;
  payload_left_ -= bytes;
  if (payload_left_ == 0) taker.arrived(head_);
}

// Of payload that goes nowhere, what the buffer has.
void FrameReader::drop_from_buffer(FrameTaker& taker) {
  const size_t bytes = std::min(filled_, payload_left_);
  if (bytes == 0) return;
  filled_ -= bytes;
  std::memmove(buffer_->data(), buffer_->data() + bytes, filled_);
  take_payload(bytes, taker);
}

bool FrameReader::parse(FrameTaker& taker) {
  waits_ = false;
  size_t at = 0;
  while (payload_left_ == 0) {
    const std::span<const std::byte> left(buffer_->data() + at, filled_ - at);
    FrameHead head;
    size_t own_bytes = 0;
    if (!check(left, &head, &own_bytes)) return false;
    if (own_bytes == 0) break;
    if (has_payload(head.kind)) {
      ++number_;
      size_t used = 0;
      if (!begin_payload(head, left.subspan(own_bytes), taker, &used)) return false;
      at += own_bytes + used;
      continue;
    }
    const FrameTaker::Heard heard = taker.hear(head, left.subspan(sizeof(head), head.bytes));
    if (heard == FrameTaker::Heard::Wrong) return false;
    waits_ = heard == FrameTaker::Heard::Later;
    if (waits_) break;
    ++number_;
    at += own_bytes;
  }
  filled_ -= at;
  if (at > 0 && filled_ > 0) std::memmove(buffer_->data(), buffer_->data() + at, filled_);
  return true;
}

bool FrameReader::check(std::span<const std::byte> bytes, FrameHead* head,
                        size_t* own_bytes) const {
  if (bytes.size() < sizeof(*head)) return true;
  std::memcpy(head, bytes.data(), sizeof(*head));
  if (!is_known(head->kind)) return false;
  const size_t body_bytes = has_payload(head->kind) ? 0 : head->bytes;
  if (body_bytes > kMaxBodyBytes) return false;
  if (bytes.size() < sizeof(*head) + body_bytes) return true;
  if (head->tag != tag_of(key_, number_, *head, bytes.data() + sizeof(*head))) return false;
  *own_bytes = sizeof(*head) + body_bytes;
  return true;
}

bool FrameReader::begin_payload(const FrameHead& head, std::span<const std::byte> come,
                                FrameTaker& taker, size_t* used) {
  using Kind = FrameTaker::Place::Kind;
  const FrameTaker::Place place =
      head.bytes > 0 ? taker.place_of(head) : FrameTaker::Place{Kind::Wrong};
  if (place.kind == Kind::Wrong) return false;
  head_ = head;
  payload_ = place.kind == Kind::Here ? place.at : nullptr;
  payload_left_ = head.bytes;
  *used = std::min<size_t>(come.size(), head.bytes);
  if (*used > 0 && payload_ != nullptr) std::memcpy(payload_, come.data(), *used);
  take_payload(*used, taker);
  return true;
}

}  // namespace rdmacoll::tcp
