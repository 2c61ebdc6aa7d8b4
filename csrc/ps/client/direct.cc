// Client: pulls of ranges and rows that it reads in the memory of a primary, which has no part in
// it. That it was the primary when the pull began is known by the map alone, within its lease:
// nobody else has answered or taken anything by then, so what is there has all that was
// acknowledged before. Floor: ps/client. Thread: under the client's lock.
#include <utility>

#include "csrc/ps/client/client.h"

namespace rdmacoll::ps {
namespace {

constexpr int64_t kOpenMs = 2'000;  // of a server's memory that is read for the first time

}  // namespace

// Where the shard lies is known from when it was asked for. What this worker has pushed, and is not
// acknowledged, comes before its pull only where that is asked for behind it.
bool Client::read(const Errand& errand, const Limit& limit) {
  const RecordHead& head = errand.head;
  const uint32_t bucket = bucket_of_shard(head.table, head.shard);
  if (head.step > 0 || open_pushes(head) > 0 || !redo_.empty()) return false;
  if (!begin_read(errand, map_.of(bucket).primary, limit)) return false;
  begin(errand);
  return true;
}

bool Client::begin_read(const Errand& errand, ServerId from, const Limit& limit) {
  const RecordHead& head = errand.head;
  if (!direct_.knows(head.table, head.shard, from) || !knows_primaries()) return false;
  const bool is_primary = map_.of(bucket_of_shard(head.table, head.shard)).primary == from;
  if (!is_primary || !is_reached(from)) return false;
  return direct_.begin(errand, tables_.at(head.table), from, limit);
}

// It has the step in its memory, so another server need not have it: one that is asked in its place
// is asked for the step again.
void Client::read_reached(Errand errand, ServerId server) {
  const Limit limit{Deadline::after_ms(surroundings_.clock(), kOpenMs), {}};
  errand.awaits = false;
  if (!begin_read(errand, server, limit)) redo_.push_back({std::move(errand), {}});
}

bool Client::knows_primaries() {
  const int64_t map_age_ns = surroundings_.clock().now_ns() - map_known_ns_;
  return map_age_ns <= kLeaseNs / 2 || look_for_map();
}

bool Client::may_read_rows(uint32_t table) {
  if (!row_reads_.knows(table)) return false;
  if (open_row_pushes_[table] > 0) take_answers();
  return open_row_pushes_[table] == 0 && redo_.empty() && knows_primaries();
}

// What could not be read is asked for.
bool Client::take_reads() {
  auto ended = direct_.take_ended();
  for (DirectReads::Ended& one : ended) {
    if (one.is_whole) {
      finish(one.errand, Status());
    } else {
      redo_.push_back({std::move(one.errand), {}});
    }
  }
  return !ended.empty();
}

}  // namespace rdmacoll::ps
