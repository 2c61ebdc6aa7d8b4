// SendQueue. Floor: transport/tcp/connection. Thread: the driver.
#include "csrc/transport/tcp/connection/send_queue.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "csrc/base/check.h"

namespace rdmacoll::tcp {

SendQueue::Entry& SendQueue::next() {
  RDMACOLL_CHECK(has_room_to_answer());
  return at(tail_);
}

void SendQueue::push_body(FrameHead head, const void* body, size_t bytes) {
  RDMACOLL_CHECK(bytes <= kMaxBodyBytes);
  Entry& entry = next();
  head.bytes = static_cast<uint32_t>(bytes);
  head.tag = tag_of(key_, tail_, head, body);
  entry.head = head;
  if (bytes > 0) std::memcpy(entry.body.data(), body, bytes);
  entry.own_bytes = static_cast<uint32_t>(sizeof(head) + bytes);
  entry.payload_bytes = 0;
  entry.transfer = 0;
  ++tail_;
}

void SendQueue::push_payload(FrameHead head, const std::byte* payload, uint32_t bytes,
                             uint64_t transfer) {
  Entry& entry = next();
  head.bytes = bytes;
  head.tag = tag_of(key_, tail_, head, nullptr);
  entry.head = head;
  entry.own_bytes = sizeof(head);
  entry.payload = payload;
  entry.payload_bytes = bytes;
  entry.transfer = queued_transfer_ = transfer;
  ++tail_;
}

SendQueue::Wrote SendQueue::write(int fd) {
  while (!empty()) {
    std::array<iovec, 2 * kFramesAtOnce> parts;
    size_t count = 0;
    uint64_t bytes = 0, skip = written_bytes_;
    for (uint64_t i = head_; i != tail_ && count + 2 <= parts.size(); ++i) {
      Entry& entry = at(i);
      if (skip < entry.own_bytes) {
        parts[count++] = {reinterpret_cast<std::byte*>(&entry.head) + skip, entry.own_bytes - skip};
        skip = 0;
      } else {
        skip -= entry.own_bytes;
      }
      if (entry.payload_bytes > 0) {
        parts[count++] = {const_cast<std::byte*>(entry.payload) + skip, entry.payload_bytes - skip};
      }
      skip = 0;
    }
    for (size_t i = 0; i < count; ++i) bytes += parts[i].iov_len;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t written = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno == EAGAIN ? Wrote::Some : Wrote::Failed;
    advance(static_cast<uint64_t>(written));
    if (static_cast<uint64_t>(written) < bytes) return Wrote::Some;
  }
  return Wrote::All;
}

void SendQueue::advance(uint64_t bytes) {
  written_bytes_ += bytes;
  while (head_ != tail_ && written_bytes_ >= at(head_).bytes()) {
    Entry& entry = at(head_);
    written_bytes_ -= entry.bytes();
    ++head_;
    // More frames of one transfer follow each other.
    const bool goes_on = head_ != tail_ && at(head_).transfer == entry.transfer;
    if (entry.transfer != 0 && !goes_on) written_transfer_ = entry.transfer;
  }
}

}  // namespace rdmacoll::tcp
