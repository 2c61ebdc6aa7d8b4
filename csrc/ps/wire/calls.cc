// Calls. Floor: ps/wire. Thread: one.
#include "csrc/ps/wire/calls.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/printable.h"
#include "csrc/ps/wire/ring_bytes.h"

namespace rdmacoll::ps {
namespace {

// Of answers that are not read yet, at most: where the end of the ring is too near for one, the
// rest of it is skipped.
constexpr uint64_t kMostAnswerBytes = kRingBytes - kLineBytes - padded(kMostBodyBytes);

uint64_t reserved_for(uint64_t answer_bytes) {
  return kLineBytes + padded(std::max(answer_bytes, kMostReasonBytes));
}

}  // namespace

bool Calls::tell(uint32_t table, const TableSpec& spec) {
  if (told_.contains(table)) return true;
  const std::string text = encode(spec);
  std::byte* const body = room(text.size(), 0);
  if (body == nullptr) return false;
  std::memcpy(body, text.data(), text.size());
  make({.bytes = static_cast<uint32_t>(text.size()), .kind = RecordKind::Create, .table = table},
       {.ended = [](const Status&, std::span<const std::byte>) {}});
  told_.insert(table);
  return true;
}

std::byte* Calls::room(uint64_t body_bytes, uint64_t answer_bytes) {
  if (reserved_ + reserved_for(answer_bytes) > kMostAnswerBytes) return nullptr;
  return body_ = connection_->room(body_bytes);
}

void Calls::make(RecordHead head, Call call) {
  head.number = ++numbers_;
  Open open{std::move(call)};
  open.reserved = reserved_for(open.call.answer_bytes);
  open.body = {body_, head.bytes};
  open.record = connection_->send(head);
  reserved_ += open.reserved;
  open_.emplace(head.number, std::move(open));
  connection_->keep(open_.begin()->second.record);
}

bool Calls::take_answers() {
  Record record;
  bool had_any = false;
  while (connection_->take(record)) {
    had_any = true;
    const auto found = open_.find(record.head.number);
    if (found != open_.end()) end(record.head.number, outcome(record, found->second.call));
    connection_->give_back(record);
  }
  const Status failure = this->failure();
  while (!failure.ok() && !open_.empty()) {
    had_any = true;
    end(open_.begin()->first, failure);
  }
  return had_any;
}

void Calls::give_up() {
  take_answers();
  given_up_ = Status(StatusCode::PeerFailed, who_ + " does not answer");
  while (!open_.empty()) end(open_.begin()->first, given_up_);
}

Status Calls::outcome(const Record& answer, const Call& call) const {
  const auto code = answer.head.code;
  if (code != 0) {
    const std::string why(reinterpret_cast<const char*>(answer.body.data()), answer.body.size());
    const bool is_known = code <= static_cast<uint16_t>(StatusCode::System);
    return Status(is_known ? static_cast<StatusCode>(code) : StatusCode::System,
                  who_ + ": " + printable(why));
  }
  if (answer.head.kind == RecordKind::Elsewhere) {
    return Status(StatusCode::Aborted, who_ + " has not what was asked for, or not now");
  }
  if (answer.head.kind != call.answer) {
    return Status(StatusCode::InvalidArgument,
                  who_ + " has answered something else than was asked");
  }
  return call.take ? call.take(answer) : Status();
}

// What it sent may be written over when its caller has seen how it ended.
void Calls::end(uint64_t number, const Status& how) {
  const auto node = open_.extract(number);
  const Open& open = node.mapped();
  reserved_ -= open.reserved;
  open.call.ended(how, open.body);
  connection_->keep(open_.empty() ? UINT64_MAX : open_.begin()->second.record);
}

}  // namespace rdmacoll::ps
