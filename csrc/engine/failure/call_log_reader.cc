// CallLogReader. Floor: engine/failure. Thread: the driver.
#include "csrc/engine/failure/call_log_reader.h"

#include <algorithm>
#include <cstring>

namespace rdmacoll {

CallLogReader::CallLogReader(const Layout& layout, uint32_t rank, const Region& block,
                             const std::vector<Link>& links)
    : layout_(layout), rank_(rank), block_(block), links_(links), asked_(links.size()) {
  asked_[rank].state = State::Read;
}

void CallLogReader::begin(const std::vector<uint32_t>& ranks) {
  for (uint32_t rank = 0; rank < asked_.size(); ++rank) {
    if (rank != rank_) asked_[rank] = {};
  }
  for (uint32_t i = 0; i < std::min<size_t>(ranks.size(), kMaxCallLogsRead); ++i) {
    // Nothing is read from a rank that is gone. Then the log of another rank, which was read into
    // this place before, must not pass for its own.
    std::memset(block_.base + layout_.seen_call_log(i), 0, kCallLogBytes);
    asked_[ranks[i]] = {State::Unposted, i, {}};
  }
}

bool CallLogReader::done() {
  bool all_done = true;
  for (uint32_t rank = 0; rank < asked_.size(); ++rank) {
    Asked& asked = asked_[rank];
    if (asked.state == State::Unposted) post(rank, asked);
    if (asked.state == State::Pending && asked.ticket.done()) {
      asked.state = State::Read;
    }
    all_done &= asked.state != State::Unposted && asked.state != State::Pending;
  }
  return all_done;
}

void CallLogReader::post(uint32_t rank, Asked& asked) {
  const Link& link = links_[rank];
  const Posted posted = link.read(layout_.call_log(), kCallLogBytes, block_,
                                  layout_.seen_call_log(asked.place), &asked.ticket);
  if (posted == Posted::Done) asked.state = State::Read;
  if (posted == Posted::Pending) asked.state = State::Pending;
}

CallLogView CallLogReader::log_of(uint32_t rank) const {
  return CallLogView(block_.base + (rank == rank_ ? layout_.call_log()
                                                  : layout_.seen_call_log(asked_[rank].place)));
}

std::optional<uint32_t> CallLogReader::differing(const CollectiveCall& mine) const {
  for (uint32_t rank = 0; rank < asked_.size(); ++rank) {
    if (rank == rank_ || asked_[rank].state != State::Read) continue;
    const auto theirs = log_of(rank).at(mine.sequence);
    if (theirs && theirs->call.signature != mine.signature) return rank;
  }
  return std::nullopt;
}

uint64_t CallLogReader::first_open() const {
  uint64_t first = UINT64_MAX;
  for (uint32_t rank = 0; rank < asked_.size(); ++rank) {
    if (asked_[rank].state != State::Read) continue;
    const auto newest = log_of(rank).newest();
    if (newest) first = std::min(first, newest->call.sequence + (newest->ended ? 1 : 0));
  }
  return first;
}

std::string CallLogReader::finding(uint32_t rank, uint64_t own_sequence) const {
  if (asked_[rank].state == State::Unasked) return "was not asked";
  if (asked_[rank].state != State::Read) return "could not be asked";
  const CallLogView log = log_of(rank);
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
  if (asked_[rank].state != State::Read) return 0;
  const CallLogView log = log_of(rank);
  if (const auto message = log.message()) return rdmacoll::waited_ns(message->started_ns, now_ns);
  const auto newest = log.newest();
  return newest && !newest->ended ? rdmacoll::waited_ns(newest->call.started_ns, now_ns) : 0;
}

}  // namespace rdmacoll
