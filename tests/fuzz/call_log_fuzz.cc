// A call log as it was read from a peer's memory: whatever is in it can be said in words.
#include <cstring>

#include "csrc/engine/failure/call_log.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

struct alignas(kLineBytes) LogBytes {
  std::byte bytes[kCallLogBytes] = {};
};

void check_words(const std::string& words) {
  constexpr size_t kMaxWordsBytes = 256;
  RDMACOLL_CHECK(!words.empty() && words.size() <= kMaxWordsBytes);
}

}  // namespace

std::vector<std::string> seeds() {
  LogBytes bytes;
  CallLog log(bytes.bytes);
  log.begin({.sequence = 1, .bytes = 400, .started_ns = 1});
  log.end(1);
  log.begin({.sequence = 2, .bytes = 800, .root = 1, .collective = Collective::Reduce});
  log.set_message(MessageCall{.bytes = 8, .peer = -1, .is_send = 1});
  return {bytes_of(bytes), bytes_of(LogBytes())};
}

void run(const std::string& bytes) {
  LogBytes log;
  std::memcpy(log.bytes, bytes.data(), std::min(bytes.size(), sizeof(log.bytes)));
  const CallLogView view(log.bytes);
  if (const auto newest = view.newest()) {
    check_words(describe(newest->call) + (newest->ended ? "has ended" : "in"));
    RDMACOLL_CHECK(waited_ns(newest->call.started_ns, INT64_MAX) >= 0);
    const auto same = view.at(newest->call.sequence);
    RDMACOLL_CHECK(!same || same->call.sequence == newest->call.sequence);
  }
  if (const auto message = view.message()) {
    check_words(describe(*message));
    RDMACOLL_CHECK(waited_ns(message->started_ns, 0) >= 0);
  }
}

}  // namespace rdmacoll::fuzz
