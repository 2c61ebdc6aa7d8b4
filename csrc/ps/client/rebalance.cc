// Client: what it asks servers themselves, and not for what they have: how much they do, and to
// hand buckets over. Nobody else is asked in the place of one that is lost.
// Floor: ps/client. Thread: any.
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "csrc/ps/client/client.h"

namespace rdmacoll::ps {
namespace {

constexpr int64_t kPauseMs = 20;

}  // namespace

Status Client::ask_server(Lock& lock, ServerId server, RecordKind kind,
                          std::span<const std::byte> body, Calls::Call call, const Limit& limit) {
  const auto batch = std::make_shared<Batch>();
  call.ended = [batch](const Status& how, std::span<const std::byte>) { batch->end_call(how); };
  bool is_asked = false;
  while (!batch->is_done()) {
    if (!is_asked) {
      if (!is_reached(server)) return Status(StatusCode::PeerFailed, "the server is lost");
      Calls& calls = servers_.at(server);
      std::byte* const to = calls.room(body.size(), call.answer_bytes);
      if (to != nullptr) {
        std::ranges::copy(body, to);
        calls.make({.bytes = static_cast<uint32_t>(body.size()), .kind = kind}, call);
        is_asked = true;
      }
    }
    RDMACOLL_RETURN_IF_ERROR(go_on(lock, limit));
  }
  return batch->status();
}

Result<Loads> Client::pull_loads(Lock& lock, const Limit& limit) {
  const auto sum = std::make_shared<Loads>();  // a call may end after this
  look_for_map();
  std::set<ServerId> primaries;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) primaries.insert(map_.of(bucket).primary);
  primaries.erase(kNoServer);
  for (const ServerId server : primaries) {
    if (!is_reached(server)) {
      auto connection = surroundings_.reach(server, limit);
      if (!connection.ok()) return connection.status();
      use(server, connection.take());
    }
    const auto take = [sum](const Record& answered) {
      if (answered.body.size() != sizeof(Loads)) return makes_no_sense("the answer");
      Loads loads;
      std::memcpy(loads.data(), answered.body.data(), sizeof(loads));
      for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) (*sum)[bucket] += loads[bucket];
      return Status();
    };
    RDMACOLL_RETURN_IF_ERROR(ask_server(
        lock, server, RecordKind::PullLoads, {},
        {.answer = RecordKind::Values, .answer_bytes = sizeof(Loads), .take = take}, limit));
  }
  return *sum;
}

// What is answered meanwhile is taken, also for other threads.
Status Client::pause(Lock& lock, int64_t ms, const Limit& limit) {
  const Clock& clock = surroundings_.clock();
  const Limit until{Deadline::after_ms(clock, std::min(ms, limit.deadline.left_ms(clock))),
                    limit.interrupt};
  while (!until.deadline.passed(clock)) {
    const Status status = go_on(lock, until);
    if (!status.ok() && status.code() != StatusCode::Timeout) return status;
  }
  if (!limit.deadline.passed(clock)) return Status();
  return Status(StatusCode::Timeout, "the servers have not handed all buckets over in time");
}

Result<Rebalanced> Client::rebalance(int64_t over_ms, const Limit& limit) {
  Lock lock(mutex_);
  auto before = pull_loads(lock, limit);
  if (!before.ok()) return before.status();
  RDMACOLL_RETURN_IF_ERROR(pause(lock, over_ms, limit));
  auto after = pull_loads(lock, limit);
  if (!after.ok()) return after.status();
  Loads loads;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const uint64_t less = before.value()[bucket], more = after.value()[bucket];
    loads[bucket] = more > less ? more - less : 0;  // less: it has another primary since
  }
  look_for_map();
  const BucketMap known = map_;
  Rebalanced done{.before = imbalance(known, loads)};
  std::vector<uint32_t> moved;
  for (const auto& [server, buckets] : balance(known, loads)) {
    RDMACOLL_RETURN_IF_ERROR(ask_server(lock, server, RecordKind::HandOver,
                                        std::as_bytes(std::span(buckets)), {}, limit));
    moved.insert(moved.end(), buckets.begin(), buckets.end());
  }
  const auto has_changed = [&](uint32_t bucket) {
    return map_.of(bucket).epoch != known.of(bucket).epoch;
  };
  while (!std::ranges::all_of(moved, has_changed)) {
    RDMACOLL_RETURN_IF_ERROR(pause(lock, kPauseMs, limit));
    look_for_map();
  }
  done.after = imbalance(map_, loads);
  done.buckets = static_cast<uint32_t>(moved.size());
  return done;
}

}  // namespace rdmacoll::ps
