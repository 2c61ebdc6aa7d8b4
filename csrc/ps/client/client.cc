// Client. Floor: ps/client. Thread: any.
#include "csrc/ps/client/client.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/printable.h"
#include "csrc/ps/client/row_bodies.h"
#include "csrc/ps/client/row_order.h"

namespace rdmacoll::ps {
namespace {

Status another_size() {
  return Status(StatusCode::PeerFailed,
                "an answer has another size than what was asked for; install the same rdmacoll on "
                "workers and servers");
}

}  // namespace

Client::Client(std::vector<Server> servers, BucketMap map, Waiter& waiter, const Clock& clock)
    : waiter_(waiter), clock_(clock), map_(std::move(map)) {
  for (Server& server : servers) servers_.emplace_back(std::move(server.line), server.who);
}

// --- waiting -------------------------------------------------------------------------------------

bool Client::take_answers() {
  bool had_any = false;
  for (Calls& server : servers_) had_any |= server.take_answers();
  return had_any;
}

// Ok: look again.
Status Client::wait_for_more(Lock& lock, const Limit& limit) {
  if (take_answers()) return Status();
  if (limit.deadline.passed(clock_)) return Status(StatusCode::Timeout, "");
  lock.unlock();
  const Status waited = waiter_.wait(limit);
  lock.lock();
  return waited;
}

Status Client::wait(const BatchPtr& batch, const Limit& limit) {
  Lock lock(mutex_);
  while (!batch->is_done()) RDMACOLL_RETURN_IF_ERROR(wait_for_more(lock, limit));
  return batch->status;
}

bool Client::is_done(const BatchPtr& batch) {
  const Lock lock(mutex_);
  take_answers();
  return batch->is_done();
}

// --- calling -------------------------------------------------------------------------------------

Status Client::call(Lock& lock, ServerId server, RecordHead head, uint64_t body_bytes,
                    const WriteBody& write, Calls::Call call, const Limit& limit) {
  RDMACOLL_CHECK(server < servers_.size());
  Calls& calls = servers_[server];
  while (true) {
    RDMACOLL_RETURN_IF_ERROR(calls.failure());
    if (std::byte* const body = calls.room(body_bytes, call)) {
      write(body);
      head.bytes = static_cast<uint32_t>(body_bytes);
      calls.make(head, std::move(call));
      return Status();
    }
    RDMACOLL_RETURN_IF_ERROR(wait_for_more(lock, limit));
  }
}

// What has been called is not taken back: an operation that fails here may be done in part.
template <typename Make>
BatchPtr Client::as_batch(Make make) {
  auto batch = std::make_shared<Batch>();
  Lock lock(mutex_);
  const Status made = make(lock, batch);
  batch->is_begun = true;
  if (batch->status.ok()) batch->status = made;
  return batch;
}

Result<const TableSpec*> Client::spec_of(uint32_t table, TableKind kind) const {
  const auto found = tables_.find(table);
  if (found == tables_.end() || found->second.kind != kind) {
    return Status(StatusCode::InvalidArgument,
                  "there is no such table of " +
                      std::string(kind == TableKind::Dense ? "ranges" : "rows") +
                      "; make it with init() first");
  }
  return &found->second;
}

Status Client::create(uint32_t table, const TableSpec& spec, const Limit& limit) {
  RDMACOLL_RETURN_IF_ERROR(check(spec));
  const std::string text = encode(spec);
  auto batch = as_batch([&](Lock& lock, const BatchPtr& of) {
    for (ServerId server = 0; server < servers_.size(); ++server) {
      RDMACOLL_RETURN_IF_ERROR(call(
          lock, server, {.kind = RecordKind::Create, .table = table}, text.size(),
          [&](std::byte* body) { std::memcpy(body, text.data(), text.size()); }, {.batch = of},
          limit));
    }
    tables_.try_emplace(table, spec);
    return Status();
  });
  return wait(batch, limit);
}

// --- ranges --------------------------------------------------------------------------------------

template <typename CallPiece>
BatchPtr Client::range_batch(uint32_t table, uint64_t first, uint64_t count, CallPiece call_piece) {
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
    for (uint64_t at = first; at < first + count;) {
      const uint64_t shard = at / kShardElements;
      const uint64_t end = std::min(first + count, (shard + 1) * kShardElements);
      const RecordHead head{.table = table,
                            .shard = shard,
                            .first = static_cast<uint32_t>(at % kShardElements),
                            .count = static_cast<uint32_t>(end - at)};
      const ServerId server = map_.of(bucket_of_shard(table, shard)).primary;
      RDMACOLL_RETURN_IF_ERROR(call_piece(lock, batch, server, head, at - first));
      at = end;
    }
    return Status();
  });
}

BatchPtr Client::push_range(uint32_t table, uint64_t first, std::span<const float> values,
                            PushAs as, const Limit& limit) {
  return range_batch(
      table, first, values.size(),
      [&](Lock& lock, const BatchPtr& batch, ServerId server, RecordHead head, uint64_t at) {
        const auto piece = values.subspan(at, head.count);
        head.kind = RecordKind::PushRange;
        head.code = static_cast<uint16_t>(as);
        return call(
            lock, server, head, piece.size_bytes(),
            [&](std::byte* body) { std::memcpy(body, piece.data(), piece.size_bytes()); },
            {.batch = batch}, limit);
      });
}

BatchPtr Client::pull_range(uint32_t table, uint64_t first, std::span<float> values,
                            const Limit& limit) {
  return range_batch(
      table, first, values.size(),
      [&](Lock& lock, const BatchPtr& batch, ServerId server, RecordHead head, uint64_t at) {
        const auto piece = values.subspan(at, head.count);
        head.kind = RecordKind::PullRange;
        const auto take = [piece](std::span<const std::byte> body) {
          if (body.size() != piece.size_bytes()) return another_size();
          std::memcpy(piece.data(), body.data(), body.size());
          return Status();
        };
        return call(
            lock, server, head, 0, [](std::byte*) {},
            {batch, RecordKind::Values, piece.size_bytes(), take}, limit);
      });
}

// --- rows ----------------------------------------------------------------------------------------

Status Client::check_ids(const TableSpec& spec, std::span<const uint64_t> ids) {
  if (spec.rows == 0) return Status();
  const auto bad = std::ranges::find_if(ids, [&](uint64_t id) { return id >= spec.rows; });
  if (bad == ids.end()) return Status();
  return Status(StatusCode::InvalidArgument, "id " + std::to_string(*bad) + " is not in table '" +
                                                 printable(spec.name) + "', which has " +
                                                 std::to_string(spec.rows) + " rows");
}

BatchPtr Client::push_rows(uint32_t table, std::span<const uint64_t> ids, const float* values,
                           PushAs as, const Limit& limit) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    auto spec = spec_of(table, TableKind::Rows);
    if (!spec.ok()) return spec.status();
    RDMACOLL_RETURN_IF_ERROR(check_ids(*spec.value(), ids));
    const RowOrder order(table, ids, map_);
    RowBodies bodies(order, ids, spec.value()->dim);
    while (const auto body = bodies.next()) {
      RecordHead head{.kind = RecordKind::PushRows,
                      .code = static_cast<uint16_t>(as),
                      .table = table,
                      .parts = static_cast<uint32_t>(body->parts.size()),
                      .count = static_cast<uint32_t>(body->rows.size())};
      RDMACOLL_RETURN_IF_ERROR(call(
          lock, body->server, head, bodies.bytes(*body),
          [&](std::byte* to) { bodies.write(*body, values, as, to); }, {.batch = batch}, limit));
    }
    return Status();
  });
}

BatchPtr Client::pull_rows(uint32_t table, std::span<const uint64_t> ids, float* values,
                           const Limit& limit) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    auto spec = spec_of(table, TableKind::Rows);
    if (!spec.ok()) return spec.status();
    RDMACOLL_RETURN_IF_ERROR(check_ids(*spec.value(), ids));
    const uint64_t row_bytes = spec.value()->dim * sizeof(float);
    const size_t most = std::max<uint64_t>(kShardElements * sizeof(float) / row_bytes, 1);
    std::vector<std::vector<uint32_t>> asked(servers_.size());
    const auto ask = [&](ServerId server) {
      const std::vector<uint32_t> rows = std::exchange(asked[server], {});
      const auto take = [values, rows, row_bytes](std::span<const std::byte> body) {
        if (body.size() != rows.size() * row_bytes) return another_size();
        const std::byte* from = body.data();
        auto* const to = reinterpret_cast<std::byte*>(values);
        for (const uint32_t row : rows) {
          std::memcpy(to + row * row_bytes, from, row_bytes);
          from += row_bytes;
        }
        return Status();
      };
      const RecordHead head{.kind = RecordKind::PullRows,
                            .table = table,
                            .count = static_cast<uint32_t>(rows.size())};
      return call(
          lock, server, head, rows.size() * sizeof(uint64_t),
          [&](std::byte* to) {
            for (const uint32_t row : rows) {
              std::memcpy(to, &ids[row], sizeof(uint64_t));
              to += sizeof(uint64_t);
            }
          },
          {batch, RecordKind::Values, rows.size() * row_bytes, take}, limit);
    };
    for (uint32_t i = 0; i < ids.size(); ++i) {
      const ServerId server = map_.of(bucket_of_row(table, ids[i])).primary;
      asked[server].push_back(i);
      if (asked[server].size() == most) RDMACOLL_RETURN_IF_ERROR(ask(server));
    }
    for (ServerId server = 0; server < servers_.size(); ++server) {
      if (!asked[server].empty()) RDMACOLL_RETURN_IF_ERROR(ask(server));
    }
    return Status();
  });
}

}  // namespace rdmacoll::ps
