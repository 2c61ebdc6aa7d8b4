// Client: what its callers do. recovery.cc has what is asked again. Floor: ps/client. Thread: any.
#include "csrc/ps/client/client.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/printable.h"
#include "csrc/ps/client/row_bodies.h"
#include "csrc/ps/client/row_order.h"
#include "csrc/ps/table/saved.h"

namespace rdmacoll::ps {
namespace {

// What is looked at now and then, though nothing comes: whether servers that were lost are
// replaced.
constexpr int64_t kRedoLookMs = 5;
constexpr int64_t kIdleLookMs = 200;
// A server that has answered nothing for so long may be stopped.
constexpr int64_t kSuspectNs = 1'000'000'000;

Status check_step(const TableSpec& spec, uint64_t first, uint64_t count, WorkerStep step) {
  if (!spec.pace) return step.number == 0 ? Status() : no_pace(spec);
  const Pace& pace = *spec.pace;
  if (step.number > 0 && first == 0 && count == pace.elements) return Status();
  return Status(StatusCode::InvalidArgument,
                "the workers of table '" + printable(spec.name) +
                    "' go in step: each pushes its first " + std::to_string(pace.elements) +
                    " elements once in each; leave that to the optimizer that made the table");
}

}  // namespace

Client::Client(uint64_t number, BucketMap map, Surroundings& surroundings)
    : number_(number),
      surroundings_(surroundings),
      map_(std::move(map)),
      direct_(surroundings),
      row_reads_(surroundings) {}

void Client::add_server(ServerId server, std::shared_ptr<Connection> connection) {
  const Lock lock(mutex_);
  use(server, std::move(connection));
}

void Client::use(ServerId server, std::shared_ptr<Connection> connection) {
  servers_.erase(server);
  direct_.forget(server);
  row_reads_.forget(server);
  servers_.emplace(server, Calls(std::move(connection), "server " + std::to_string(server)));
}

// --- waiting -------------------------------------------------------------------------------------

bool Client::take_answers() {
  bool had_any = false;
  for (auto& [number, server] : servers_) had_any |= server.take_answers();
  if (had_any) suspect_ns_ = surroundings_.clock().now_ns() + kSuspectNs;
  return take_reads() || had_any;  // a server that is stopped can be read all the same
}

Status Client::go_on(Lock& lock, const Limit& limit) {
  if (take_answers() || redo(limit)) return Status();
  const Clock& clock = surroundings_.clock();
  if (limit.deadline.passed(clock)) {
    return Status(StatusCode::Timeout, "the servers have not answered in time");
  }
  suspect();
  // A wait asks for it only after a while, which is longer than the waits for a successor.
  if (!redo_.empty() && limit.interrupt) RDMACOLL_RETURN_IF_ERROR(limit.interrupt());
  const int64_t most_ms = redo_.empty() ? kIdleLookMs : kRedoLookMs;
  lock.unlock();
  const Status waited =
      surroundings_.wait(std::min(most_ms, limit.deadline.left_ms(clock)), limit.interrupt);
  lock.lock();
  return waited;
}

Status Client::wait(const BatchPtr& batch, const Limit& limit) {
  Lock lock(mutex_);
  while (!batch->is_done()) RDMACOLL_RETURN_IF_ERROR(go_on(lock, limit));
  return batch->status();
}

bool Client::is_done(const BatchPtr& batch) {
  const Lock lock(mutex_);
  take_answers();
  return batch->is_done();
}

// --- asking --------------------------------------------------------------------------------------

bool Client::try_ask(ServerId server, Errand& errand, uint64_t body_bytes, const WriteBody& write) {
  const TableSpec& spec = tables_.at(errand.head.table);
  const uint64_t answer_bytes = errand.answer_bytes(spec);
  Calls& calls = servers_.at(server);
  if (!calls.tell(errand.head.table, spec)) return false;
  std::byte* const body = calls.room(body_bytes, answer_bytes);
  if (body == nullptr) return false;
  write(body);
  RecordHead head = errand.head;
  head.bytes = static_cast<uint32_t>(body_bytes);
  head.worker = number_;
  if (errand.awaits) head.count = 0;
  const RecordKind answer = errand.answer();
  errand.redone = redone_;
  const auto shared = std::make_shared<Errand>(std::move(errand));
  calls.make(head, {.answer = answer,
                    .answer_bytes = answer_bytes,
                    .take =
                        [this, shared, server, &spec](const Record& answered) {
                          learn(shared->head, server, answered.head);
                          return shared->take(answered.body, spec);
                        },
                    .ended =
                        [this, shared, server](const Status& how, std::span<const std::byte> sent) {
                          end(*shared, server, how, sent);
                        }});
  return true;
}

void Client::learn(const RecordHead& asked, ServerId server, const RecordHead& answered) {
  const ShardPlace place{answered.shard, answered.first};
  if (place.extent == 0 || !surroundings_.can_read(server)) return;
  if (asked.kind == RecordKind::PullRange) direct_.learn(asked.table, asked.shard, server, place);
  if (asked.kind == RecordKind::PullRows) row_reads_.learn(asked.table, server, place);
}

// A server that is lost, or has not what was asked for, is not the last word. Nor is what is pulled
// where a push is asked again since: what this worker had pushed before comes behind it by now.
void Client::end(const Errand& errand, ServerId server, const Status& how,
                 std::span<const std::byte> sent) {
  const bool is_push = errand.head.kind == RecordKind::Push;
  const bool is_early = how.ok() && !is_push && errand.redone != redone_;
  if (how.ok() && errand.awaits && !is_early) return read_reached(errand, server);
  const bool is_lost = how.code() == StatusCode::PeerFailed || how.code() == StatusCode::Aborted;
  const bool is_unlent = errand.head.loan > 0 && how.code() == StatusCode::Unsupported;
  if (!how.ok() && !is_lost && !is_unlent) fill_gap(errand.head, sent);
  if (!is_lost && !is_unlent && !is_early) return finish(errand, how);
  if (is_unlent) surroundings_.end_loans(server);
  if (is_push) ++redone_;
  redo_.push_back(for_another({errand, {sent.begin(), sent.end()}}));
}

void Client::begin(const Errand& errand, uint64_t calls) {
  errand.batch->add_calls(calls);
  if (errand.head.kind == RecordKind::Push) open_pushes(errand.head) += calls;
}

void Client::finish(const Errand& errand, const Status& how) {
  if (errand.head.kind == RecordKind::Push) {
    RDMACOLL_CHECK(open_pushes(errand.head) > 0);
    --open_pushes(errand.head);
  }
  errand.batch->end_call(how);
}

Status Client::ask(Lock& lock, ServerId server, Errand errand, uint64_t body_bytes,
                   const WriteBody& write, const Limit& limit) {
  while (!redo_.empty()) RDMACOLL_RETURN_IF_ERROR(go_on(lock, limit));
  begin(errand);
  while (is_reached(server)) {
    if (try_ask(server, errand, body_bytes, write)) return Status();
    const Status status = go_on(lock, limit);
    if (status.ok()) continue;
    finish(errand, status);
    return status;
  }
  std::vector<std::byte> body(body_bytes);
  write(body.data());
  redo_.push_back(for_another({std::move(errand), std::move(body)}));
  return Status();
}

bool Client::is_reached(ServerId server) const {
  const auto known = servers_.find(server);
  return known != servers_.end() && known->second.failure().ok();
}

Result<const TableSpec*> Client::spec_of(uint32_t table, TableKind kind) const {
  const auto found = tables_.find(table);
  if (found == tables_.end())
    return Status(StatusCode::InvalidArgument, "there is no such table; make it with init() first");
  if (found->second.kind != kind) {
    return Status(StatusCode::InvalidArgument,
                  "table '" + printable(found->second.name) + "' " +
                      (kind == TableKind::Dense ? "has rows; use row_push() and row_pull()"
                                                : "is dense; use push() and pull()"));
  }
  return &found->second;
}

// Servers are told of it before what is first asked of them about it.
Status Client::create(uint32_t table, const TableSpec& spec) {
  RDMACOLL_RETURN_IF_ERROR(check(spec));
  const Lock lock(mutex_);
  tables_.try_emplace(table, spec);
  return Status();
}

// --- ranges --------------------------------------------------------------------------------------

template <typename Check, typename CallPiece>
BatchPtr Client::range_batch(uint32_t table, uint64_t first, uint64_t count, Check check,
                             CallPiece call_piece) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    auto spec = spec_of(table, TableKind::Dense);
    if (!spec.ok()) return spec.status();
    const uint64_t elements = spec.value()->elements;
    if (first > elements || count > elements - first) {
      return Status(StatusCode::InvalidArgument,
                    "elements " + std::to_string(first) + " to " + std::to_string(first + count) +
                        " are not in table '" + printable(spec.value()->name) + "', which has " +
                        std::to_string(elements));
    }
    RDMACOLL_RETURN_IF_ERROR(check(*spec.value()));
    for (uint64_t at = first; at < first + count;) {
      const uint64_t shard = at / kShardElements;
      const uint64_t end = std::min(first + count, (shard + 1) * kShardElements);
      const RecordHead head{.table = table,
                            .shard = static_cast<uint32_t>(shard),
                            .first = static_cast<uint32_t>(at % kShardElements),
                            .count = static_cast<uint32_t>(end - at)};
      RDMACOLL_RETURN_IF_ERROR(call_piece(lock, batch, head, at - first));
      at = end;
    }
    return Status();
  });
}

BatchPtr Client::push_range(uint32_t table, uint64_t first, std::span<const float> values,
                            PushAs as, const Limit& limit, WorkerStep step, const OwnRates& own,
                            std::shared_ptr<const void> keeps) {
  Rates rates;
  const auto check = [&](const TableSpec& spec) {
    if (as != PushAs::Gradient) return Status();
    RDMACOLL_RETURN_IF_ERROR(check_step(spec, first, values.size(), step));
    auto all = rates_of(spec, own);
    if (all.ok()) rates = all.value();
    return all.status();
  };
  return range_batch(table, first, values.size(), check,
                     [&](Lock& lock, const BatchPtr& batch, RecordHead head, uint64_t at) {
                       const auto piece = values.subspan(at, head.count);
                       head.kind = RecordKind::Push;
                       head.code = static_cast<uint16_t>(as);
                       head.parts = 1;
                       head.rank = step.rank;
                       head.step = step.number;
                       if (step.number > 0) head.first = step.generation;
                       PushPart part{.bucket = bucket_of_shard(table, head.shard)};
                       const BucketMap::Place place = map_.of(part.bucket);
                       Errand errand{batch, head};
                       errand.keeps = keeps;
                       auto lent = lend(errand, piece, place);
                       if (!lent) {
                         auto staged = stage(lock, errand, piece, place, limit);
                         if (!staged.ok()) return staged.status();
                         lent = staged.value();
                       }
                       const std::span<const std::byte> rest =
                           lent ? std::as_bytes(std::span(&*lent, 1)) : std::as_bytes(piece);
                       const uint64_t bytes = sizeof(part) + rest.size() + rates_bytes(as);
                       return ask(
                           lock, place.primary, std::move(errand), bytes,
                           [&](std::byte* body) {
                             part.push = next_push(part.bucket);
                             std::memcpy(body, &part, sizeof(part));
                             std::byte* const to = body + sizeof(part);
                             std::memcpy(to, rest.data(), rest.size());
                             std::memcpy(to + rest.size(), &rates, rates_bytes(as));
                           },
                           limit);
                     });
}

BatchPtr Client::pull_range(uint32_t table, uint64_t first, std::span<float> values,
                            const Limit& limit, uint32_t step, std::shared_ptr<const void> keeps) {
  const auto check = [&](const TableSpec& spec) {
    return step == 0 || spec.pace ? Status() : no_pace(spec);
  };
  const Stores stores = values.size_bytes() >= kStreamBytes ? Stores::Streamed : Stores::Cached;
  return range_batch(table, first, values.size(), check,
                     [&](Lock& lock, const BatchPtr& batch, RecordHead head, uint64_t at) {
                       head.kind = RecordKind::PullRange;
                       head.step = step;
                       auto* const into = reinterpret_cast<std::byte*>(values.data() + at);
                       Errand errand{batch, head, into};
                       errand.keeps = keeps;
                       errand.stores = stores;
                       if (read(errand, limit)) return Status();
                       const ServerId server = map_.of(bucket_of_shard(table, head.shard)).primary;
                       errand.awaits = step > 0 && direct_.knows(table, head.shard, server);
                       return ask(lock, server, errand, 0, [](std::byte*) {}, limit);
                     });
}

// --- rows ----------------------------------------------------------------------------------------

Status Client::check_ids(const TableSpec& spec, std::span<const uint64_t> ids) {
  if (spec.rows == 0) return Status();
  const auto bad = std::ranges::find_if(ids, [&](uint64_t id) { return id >= spec.rows; });
  if (bad == ids.end()) return Status();
  return Status(StatusCode::InvalidArgument,
                "id " + std::to_string(static_cast<int64_t>(*bad)) + " is not in table '" +
                    printable(spec.name) + "', which has " + std::to_string(spec.rows) + " rows");
}

BatchPtr Client::push_rows(uint32_t table, std::span<const uint64_t> ids, const float* values,
                           PushAs as, const Limit& limit, const OwnRates& own) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    auto spec = spec_of(table, TableKind::Rows);
    if (!spec.ok()) return spec.status();
    RDMACOLL_RETURN_IF_ERROR(check_ids(*spec.value(), ids));
    auto rates = rates_of(*spec.value(), own);
    if (!rates.ok()) return rates.status();
    const RowOrder order(table, ids, map_);
    RowBodies bodies(order, ids, push_floats(*spec.value(), as).each, as, rates.value());
    while (auto body = bodies.next()) {
      const RecordHead head{.kind = RecordKind::Push,
                            .code = static_cast<uint16_t>(as),
                            .table = table,
                            .parts = static_cast<uint32_t>(body->parts.size()),
                            .count = static_cast<uint32_t>(body->rows.size())};
      RDMACOLL_RETURN_IF_ERROR(ask(
          lock, body->server, {batch, head}, bodies.bytes(*body),
          [&](std::byte* to) {
            for (PushPart& part : body->parts) part.push = next_push(part.bucket);
            bodies.write(*body, values, to);
          },
          limit));
    }
    return Status();
  });
}

BatchPtr Client::ask_rows(RecordKind kind, uint32_t table, std::span<const uint64_t> ids,
                          float* into, const Limit& limit) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    auto spec = spec_of(table, TableKind::Rows);
    if (!spec.ok()) return spec.status();
    RDMACOLL_RETURN_IF_ERROR(check_ids(*spec.value(), ids));
    const uint64_t row_bytes = answered_row_floats(kind, *spec.value()) * sizeof(float);
    const size_t most = std::max<uint64_t>(kShardElements * sizeof(float) / row_bytes, 1);
    std::map<ServerId, std::vector<uint32_t>> asked;
    const auto ask_for = [&](ServerId server, std::vector<uint32_t> rows) {
      const RecordHead head{
          .kind = kind, .table = table, .count = static_cast<uint32_t>(rows.size())};
      const auto write = [&ids, rows](std::byte* to) {
        for (const uint32_t row : rows) {
          std::memcpy(to, &ids[row], sizeof(uint64_t));
          to += sizeof(uint64_t);
        }
      };
      const uint64_t bytes = rows.size() * sizeof(uint64_t);
      return ask(lock, server, {batch, head, reinterpret_cast<std::byte*>(into), std::move(rows)},
                 bytes, write, limit);
    };
    std::vector<uint32_t> left(ids.size());
    std::iota(left.begin(), left.end(), 0);
    if (kind == RecordKind::PullRows && may_read_rows(table)) {
      row_reads_.read({table, ids, reinterpret_cast<std::byte*>(into), row_bytes}, map_, limit,
                      left);
    }
    for (const uint32_t i : left) {
      const ServerId server = map_.of(bucket_of_row(table, ids[i])).primary;
      asked[server].push_back(i);
      if (asked[server].size() < most) continue;
      RDMACOLL_RETURN_IF_ERROR(ask_for(server, std::exchange(asked[server], {})));
    }
    for (auto& [server, rows] : asked) {
      if (!rows.empty()) RDMACOLL_RETURN_IF_ERROR(ask_for(server, std::move(rows)));
    }
    return Status();
  });
}

}  // namespace rdmacoll::ps
