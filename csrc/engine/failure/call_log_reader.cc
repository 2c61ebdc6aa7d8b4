// CallLogReader. Floor: engine/failure. Thread: the driver.
#include "csrc/engine/failure/call_log_reader.h"

#include <algorithm>

namespace rdmacoll {

CallLogReader::CallLogReader(const PeerLinks& links)
    : one_each_(links.layout().call_log().places == links.world()),
      reads_(links.layout().call_log(), links),
      logs_(reads_.places() + 1) {
  logs_.back() = {links.rank(), links.block().base + links.layout().call_log().own};
}

void CallLogReader::begin(const std::vector<uint32_t>& ranks) {
  reads_.forget();
  std::fill(logs_.begin(), logs_.end() - 1, Log{});
  // A rank keeps its place where it can: an older read that is still under way, to a peer that does
  // not answer, then keeps no other waiting.
  for (uint32_t i = 0; i < std::min<size_t>(ranks.size(), reads_.places()); ++i) {
    logs_[one_each_ ? ranks[i] : i].rank = ranks[i];
  }
}

bool CallLogReader::done() {
  bool all = true;
  for (uint32_t place = 0; place < reads_.places(); ++place) {
    Log& log = logs_[place];
    if (!log.rank || log.bytes != nullptr) continue;
    reads_.post(place, *log.rank);
    log.bytes = reads_.take(place);
    all &= log.bytes != nullptr;
  }
  return all;
}

const CallLogReader::Log* CallLogReader::log_of(uint32_t rank) const {
  const auto log =
      std::find_if(logs_.begin(), logs_.end(), [&](const Log& one) { return one.rank == rank; });
  return log != logs_.end() ? &*log : nullptr;
}

std::optional<uint32_t> CallLogReader::differing(const CollectiveCall& mine) const {
  for (const Log& log : logs_) {
    if (log.bytes == nullptr) continue;
    const auto theirs = CallLogView(log.bytes).at(mine.sequence);
    if (theirs && theirs->call.signature != mine.signature) return log.rank;
  }
  return std::nullopt;
}

uint64_t CallLogReader::first_open() const {
  uint64_t first = UINT64_MAX;
  for (const Log& log : logs_) {
    if (log.bytes == nullptr) continue;
    const auto newest = CallLogView(log.bytes).newest();
    if (newest) first = std::min(first, newest->call.sequence + (newest->ended ? 1 : 0));
  }
  return first;
}

std::string CallLogReader::finding(uint32_t rank, uint64_t own_sequence) const {
  const Log* read = log_of(rank);
  if (read == nullptr) return "was not asked";
  if (read->bytes == nullptr) return "could not be asked";
  const CallLogView log(read->bytes);
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const auto newest = log.newest()) {
    const uint64_t at = newest->call.sequence;
    const auto add_earlier = [&](uint64_t sequence) {
      const auto then = sequence < at ? log.at(sequence) : std::nullopt;
      if (then) add("had called " + describe(then->call));
    };
    const uint64_t open = first_open();
    add_earlier(open);
    if (own_sequence > open) add_earlier(own_sequence);
    add((newest->ended ? "has ended " : "in ") + describe(newest->call));
    if (at < own_sequence) add("has not called #" + std::to_string(own_sequence));
  }
  if (const auto message = log.message()) add("in " + describe(*message));
  return text;
}

int64_t CallLogReader::waited_ns(uint32_t rank, int64_t now_ns) const {
  const Log* read = log_of(rank);
  if (read == nullptr || read->bytes == nullptr) return 0;
  const CallLogView log(read->bytes);
  if (const auto message = log.message()) return rdmacoll::waited_ns(message->started_ns, now_ns);
  const auto newest = log.newest();
  return newest && !newest->ended ? rdmacoll::waited_ns(newest->call.started_ns, now_ns) : 0;
}

}  // namespace rdmacoll
