// CallLog. Floor: engine. Thread: see call_log.h.
#include "csrc/engine/call_log.h"

#include <cstring>

namespace rdmacoll {
namespace {

// An entry is whole where both numbers are the same: the writer changes the last first, and who
// reads a line reads it from its beginning, or at once.
template <typename Call>
struct alignas(kLineBytes) Entry {
  std::atomic<uint64_t> number;  // of what is in it; 0: nothing
  Call call;
  uint8_t ended;  // a peer's byte may be any, which a bool must not be
  std::atomic<uint64_t> number_again;

  void write(uint64_t new_number, const Call& new_call) {
    number_again.store(new_number, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    call = new_call;
    ended = 0;
    number.store(new_number, std::memory_order_release);
  }
};

using CollectiveEntry = Entry<CollectiveCall>;
using MessageEntry = Entry<MessageCall>;
static_assert(sizeof(CollectiveEntry) == kLineBytes && sizeof(MessageEntry) == kLineBytes);

template <typename Call>
bool is_whole(const Entry<Call>& entry) {
  const uint64_t number = entry.number.load(std::memory_order_relaxed);
  return number != 0 && number == entry.number_again.load(std::memory_order_relaxed);
}

const CollectiveEntry& collective_at(const std::byte* bytes, uint64_t place) {
  return reinterpret_cast<const CollectiveEntry*>(bytes)[place];
}

}  // namespace

struct CallLog::Lines {
  CollectiveEntry collectives[kLoggedCollectives];
  MessageEntry message;
};

CallLog::CallLog(std::byte* bytes) : lines_(reinterpret_cast<Lines*>(bytes)) {
  static_assert(sizeof(Lines) == kCallLogBytes);
}

void CallLog::begin(const CollectiveCall& call) {
  lines_->collectives[call.sequence % kLoggedCollectives].write(call.sequence, call);
}

void CallLog::end(uint64_t sequence) {
  lines_->collectives[sequence % kLoggedCollectives].ended = 1;
}

void CallLog::set_message(const std::optional<MessageCall>& message) {
  has_message_ = message.has_value();
  MessageEntry& entry = lines_->message;
  if (message) {
    entry.write(entry.number_again.load(std::memory_order_relaxed) + 1, *message);
  } else {
    entry.number.store(0, std::memory_order_release);
  }
}

CallLogView::CallLogView(const std::byte* bytes) : bytes_(bytes) {}

std::optional<CallLogView::Collective> CallLogView::newest() const {
  const CollectiveEntry* newest = nullptr;
  for (uint64_t place = 0; place < kLoggedCollectives; ++place) {
    const CollectiveEntry& entry = collective_at(bytes_, place);
    if (is_whole(entry) && (newest == nullptr || entry.call.sequence > newest->call.sequence)) {
      newest = &entry;
    }
  }
  if (newest == nullptr) return std::nullopt;
  return Collective{newest->call, newest->ended != 0};
}

std::optional<CallLogView::Collective> CallLogView::at(uint64_t sequence) const {
  const CollectiveEntry& entry = collective_at(bytes_, sequence % kLoggedCollectives);
  if (!is_whole(entry) || entry.call.sequence != sequence) return std::nullopt;
  return Collective{entry.call, entry.ended != 0};
}

std::optional<MessageCall> CallLogView::message() const {
  const auto& entry =
      *reinterpret_cast<const MessageEntry*>(bytes_ + kLoggedCollectives * kLineBytes);
  if (!is_whole(entry)) return std::nullopt;
  return entry.call;
}

}  // namespace rdmacoll
