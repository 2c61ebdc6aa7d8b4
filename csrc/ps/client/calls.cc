// Calls. Floor: ps/client. Thread: under the client's lock.
#include "csrc/ps/client/calls.h"

#include <algorithm>

#include "csrc/base/printable.h"
#include "csrc/ps/wire/ring_bytes.h"

namespace rdmacoll::ps {
namespace {

// Of answers that are not read yet, at most: where the end of the ring is too near for one, the
// rest of it is skipped.
constexpr uint64_t kMostAnswerBytes = kRingBytes - kLineBytes - padded(kMostBodyBytes);

}  // namespace

uint64_t Calls::reserved_for(const Call& call) {
  return kLineBytes + padded(std::max(call.answer_bytes, kMostReasonBytes));
}

std::byte* Calls::room(uint64_t body_bytes, const Call& call) {
  if (reserved_ + reserved_for(call) > kMostAnswerBytes) return nullptr;
  return line_->room(body_bytes);
}

void Calls::make(RecordHead head, Call call) {
  head.number = ++numbers_;
  const uint64_t reserved = reserved_for(call);
  reserved_ += reserved;
  ++call.batch->calls;
  open_.emplace(head.number, Open{std::move(call), reserved});
  line_->send(head);
}

bool Calls::take_answers() {
  Record record;
  bool had_any = false;
  while (line_->take(record)) {
    had_any = true;
    const auto found = open_.find(record.head.number);
    if (found != open_.end()) {
      const Open open = std::move(found->second);
      open_.erase(found);
      reserved_ -= open.reserved;
      open.call.batch->end_call(outcome(record, open.call));
    }
    line_->give_back(record);
  }
  if (const Status failure = line_->failure(); !failure.ok() && !open_.empty()) {
    fail(failure);
    return true;
  }
  return had_any;
}

Status Calls::outcome(const Record& answer, const Call& call) const {
  const auto code = answer.head.code;
  if (code != 0) {
    const std::string why(reinterpret_cast<const char*>(answer.body.data()), answer.body.size());
    const bool is_known = code <= static_cast<uint16_t>(StatusCode::System);
    return Status(is_known ? static_cast<StatusCode>(code) : StatusCode::System,
                  who_ + ": " + printable(why));
  }
  if (answer.head.kind != call.answer) {
    return Status(StatusCode::PeerFailed, who_ + " has answered something else than was asked");
  }
  return call.take ? call.take(answer.body) : Status();
}

void Calls::fail(const Status& why) {
  for (auto& [number, open] : open_) open.call.batch->end_call(why);
  open_.clear();
  reserved_ = 0;
}

}  // namespace rdmacoll::ps
