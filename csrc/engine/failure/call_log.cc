// CallLog. Floor: engine/failure. Thread: see call_log.h.
#include "csrc/engine/failure/call_log.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "csrc/engine/failure/word_sum.h"

namespace rdmacoll {
namespace {

// Peers read an entry while it changes, so all words are atomic, and its sum says whether they
// belong together.
struct alignas(kLineBytes) Entry {
  static constexpr size_t kCallWords = 4;
  using Words = std::array<uint64_t, kCallWords + 1>;  // number, call

  std::atomic<uint64_t> sum;     // of what follows but for the end
  std::atomic<uint64_t> number;  // of what is in it; 0: nothing
  std::array<std::atomic<uint64_t>, kCallWords> call;
  std::atomic<uint64_t> ended;  // the number of the newest that has

  template <typename Call>
  void write(uint64_t new_number, const Call& new_call) {
    Words words{new_number};
    std::memcpy(words.data() + 1, &new_call, sizeof(new_call));
    sum.store(sum_of(words), std::memory_order_release);
    number.store(new_number, std::memory_order_release);
    for (size_t i = 0; i < kCallWords; ++i) call[i].store(words[i + 1], std::memory_order_release);
  }

  template <typename Call>
  Call read() const {
    std::array<uint64_t, kCallWords> words;
    for (size_t i = 0; i < kCallWords; ++i) words[i] = call[i].load(std::memory_order_relaxed);
    return std::bit_cast<Call>(words);
  }

  bool is_whole() const {
    Words words{number.load(std::memory_order_relaxed)};
    for (size_t i = 0; i < kCallWords; ++i) words[i + 1] = call[i].load(std::memory_order_relaxed);
    return words[0] != 0 && sum.load(std::memory_order_relaxed) == sum_of(words);
  }
};
static_assert(sizeof(Entry) == kLineBytes);

const Entry& entry_at(const std::byte* bytes, uint64_t place) {
  return reinterpret_cast<const Entry*>(bytes)[place];
}

CallLogView::Collective collective_in(const Entry& entry) {
  const auto call = entry.read<CollectiveCall>();
  return {call, entry.ended.load(std::memory_order_relaxed) == call.sequence};
}

}  // namespace

struct CallLog::Lines {
  Entry collectives[kLoggedCollectives];
  Entry message;
};

CallLog::CallLog(std::byte* bytes) : lines_(reinterpret_cast<Lines*>(bytes)) {
  static_assert(sizeof(Lines) == kCallLogBytes);
}

void CallLog::begin(const CollectiveCall& call) {
  lines_->collectives[call.sequence % kLoggedCollectives].write(call.sequence, call);
}

void CallLog::end(uint64_t sequence) {
  lines_->collectives[sequence % kLoggedCollectives].ended.store(sequence,
                                                                 std::memory_order_release);
}

void CallLog::set_message(const std::optional<MessageCall>& message) {
  has_message_ = message.has_value();
  Entry& entry = lines_->message;
  if (message) {
    entry.write(++messages_, *message);
  } else {
    entry.number.store(0, std::memory_order_release);
  }
}

CallLogView::CallLogView(const std::byte* bytes) : bytes_(bytes) {}

std::optional<CallLogView::Collective> CallLogView::newest() const {
  std::optional<Collective> newest;
  for (uint64_t place = 0; place < kLoggedCollectives; ++place) {
    const Entry& entry = entry_at(bytes_, place);
    if (!entry.is_whole()) continue;
    const Collective found = collective_in(entry);
    if (!newest || found.call.sequence > newest->call.sequence) newest = found;
  }
  return newest;
}

std::optional<CallLogView::Collective> CallLogView::at(uint64_t sequence) const {
  const Entry& entry = entry_at(bytes_, sequence % kLoggedCollectives);
  if (!entry.is_whole()) return std::nullopt;
  const Collective found = collective_in(entry);
  return found.call.sequence == sequence ? std::optional(found) : std::nullopt;
}

std::optional<MessageCall> CallLogView::message() const {
  const Entry& entry = entry_at(bytes_, kLoggedCollectives);
  if (!entry.is_whole()) return std::nullopt;
  return entry.read<MessageCall>();
}

}  // namespace rdmacoll
