// Server. Floor: ps/server. Thread: one.
#include "csrc/ps/server/server.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <utility>

#include "csrc/ps/server/answers.h"

namespace rdmacoll::ps {
namespace {

bool has_part(const BucketMap::Place& place, ServerId server) {
  return place.primary == server || place.backup == server;
}

// nullopt: they make no sense.
std::optional<std::vector<uint32_t>> read_buckets(const Record& record) {
  std::vector<uint32_t> buckets(record.body.size() / sizeof(uint32_t));
  if (record.body.size() % sizeof(uint32_t) != 0) return std::nullopt;
  if (!buckets.empty()) std::memcpy(buckets.data(), record.body.data(), record.body.size());
  const bool are_all =
      std::ranges::all_of(buckets, [](uint32_t bucket) { return bucket < kBuckets; });
  return are_all ? std::optional(std::move(buckets)) : std::nullopt;
}

}  // namespace

Server::Server(ServerId me, uint32_t replicas, BucketMap map, ShardMemory& memory,
               const Clock& clock)
    : state_{.me = me,
             .memory = memory,
             .clock = clock,
             .keeps_backups = replicas > 1,
             .map = std::move(map)},
      installs_(state_, servers_),
      pushes_(state_, servers_, installs_),
      pulls_(state_),
      arrival_(state_, servers_) {}

void Server::add(std::shared_ptr<Connection> connection, ServerId from) {
  peers_.push_back({.connection = std::move(connection), .from = from});
}

void Server::add_backup(ServerId server, std::shared_ptr<Connection> connection) {
  servers_.add(server, std::move(connection));
}

std::shared_ptr<void> Server::drop(uint32_t table) {
  if (!dropped_.insert(table).second) return nullptr;
  installs_.drop(table);
  const auto found = state_.tables.find(table);
  if (found == state_.tables.end()) return nullptr;
  auto memory = found->second.drop();
  pushes_.drop(found->second);
  return memory;
}

bool Server::turn() {
  bool had_any = servers_.take_answers();
  had_any |= pushes_.settle();
  for (Peer& peer : peers_) had_any |= answer_all(peer);
  had_any |= pulls_.settle();
  had_any |= installs_.turn();
  arrival_.turn();
  std::erase_if(peers_, [](const Peer& peer) { return !peer.connection->failure().ok(); });
  return had_any;
}

ServerStats Server::stats() const {
  ServerStats stats{
      .without_room = installs_.without_room(), .pushes = pushes_.count(), .pulls = pulls_.count()};
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (!state_.is_primary(bucket)) continue;
    ++stats.buckets;
    if (state_.keeps_backups && state_.map.of(bucket).backup == kNoServer) ++stats.alone;
  }
  for (const auto& [id, table] : state_.tables) {
    if (table.is_dropped()) continue;
    ++stats.tables;
    stats.elements += table.count_elements();
    add_rows(table, stats);
    add_steps(table, stats);
  }
  return stats;
}

void Server::add_rows(const ServerTable& table, ServerStats& stats) const {
  if (table.spec().kind != TableKind::Rows) return;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const RowShard* const rows = table.find_rows(bucket);
    if (rows == nullptr) continue;
    stats.rows += rows->rows();
    if (state_.is_primary(bucket)) stats.rows_of[table.id()] += rows->rows();
  }
}

void Server::add_steps(const ServerTable& table, ServerStats& stats) const {
  for (const auto& [number, shard] : table.all_dense()) {
    const bool is_here = state_.is_primary(bucket_of_shard(table.id(), number));
    if (!is_here || shard.pace() == nullptr) continue;
    const std::vector<uint32_t>& reached = shard.pace()->reached();
    if (reached.empty()) continue;  // nothing of it is pushed in a step
    std::vector<uint32_t>& steps = stats.steps_of.try_emplace(table.id(), reached).first->second;
    steps.resize(std::min(steps.size(), reached.size()));  // while their number changes
    std::ranges::transform(steps, reached, steps.begin(), std::ranges::min);
  }
}

// --- the map -------------------------------------------------------------------------------------

std::optional<BucketMap> Server::wish() const {
  BucketMap next = state_.map;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const BucketMap::Place& place = state_.map.of(bucket);
    const bool lost_backup = place.primary == state_.me && servers_.is_lost(place.backup);
    const bool lost_primary = place.backup == state_.me && servers_.is_lost(place.primary);
    const bool lacks_a_push = place.primary == state_.me && pushes_.has_failed(bucket);
    if (lost_backup || lost_primary || lacks_a_push || installs_.has_failed(bucket)) {
      next.set(bucket, state_.me, kNoServer);
    } else if (state_.hands_over[bucket] && pushes_.is_quiet(bucket)) {
      next.set(bucket, place.backup, state_.me);
    } else if (const ServerId ready = installs_.ready(bucket); ready != kNoServer) {
      const bool moves = !state_.keeps_backups;
      next.set(bucket, moves ? ready : state_.me, moves ? kNoServer : ready);
    }
  }
  return next == state_.map ? std::nullopt : std::optional(next);
}

void Server::hand_over(std::span<const uint32_t> buckets) {
  for (const uint32_t bucket : buckets) {
    const bool has_backup = state_.map.of(bucket).backup != kNoServer;
    if (state_.is_primary(bucket) && has_backup) state_.hands_over[bucket] = true;
  }
  // Workers may still take this server for the primary when the other one is that already.
  for (auto& [id, table] : state_.tables) {
    for (auto& [number, shard] : table.all_dense()) {
      if (state_.hands_over[bucket_of_shard(id, number)]) shard.hide();
    }
    for (const uint32_t bucket : buckets) {
      RowShard* const rows = table.find_rows(bucket);
      if (rows != nullptr && state_.hands_over[bucket]) rows->hide();
    }
  }
}

// Who becomes primary and has a backup at once was handed the bucket over: the one before answers
// nothing of it any more. Else that one may answer for as long as its lease is.
void Server::adopt(const BucketMap& map, int64_t known_ns) {
  if (map.version() < state_.map.version()) return;
  state_.leased_until_ns = std::max(state_.leased_until_ns, known_ns + kLeaseNs);
  if (map.version() == state_.map.version()) return;
  const int64_t now_ns = state_.clock.now_ns();
  std::bitset<kBuckets> was_here, is_backup_now;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const BucketMap::Place& place = map.of(bucket);
    was_here[bucket] = has_part(state_.map.of(bucket), state_.me) || installs_.was_told(bucket);
    if (place.epoch != state_.map.of(bucket).epoch) state_.hands_over[bucket] = false;
    is_backup_now[bucket] = state_.is_primary(bucket) && place.backup == state_.me;
    const bool is_new = place.primary == state_.me && !state_.is_primary(bucket);
    const bool was_handed_over = place.backup != kNoServer;
    if (is_new) state_.serves_from_ns[bucket] = was_handed_over ? now_ns : now_ns + kLeaseNs;
  }
  const BucketMap before = std::exchange(state_.map, map);
  installs_.adopt(before);
  if (is_backup_now.any()) {
    for (auto& [id, table] : state_.tables) table.own_gradients(is_backup_now);
  }
  pushes_.settle();
  std::bitset<kBuckets> gone;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const bool is_here = has_part(map.of(bucket), state_.me) || installs_.was_told(bucket);
    gone[bucket] = was_here[bucket] && !is_here;
  }
  if (gone.none()) return;
  for (auto& [id, table] : state_.tables) table.forget(gone);
}

// --- what comes ----------------------------------------------------------------------------------

bool Server::answer_all(Peer& peer) {
  bool had_any = false;
  Record record;
  while (peer.held || peer.connection->take(record)) {
    const bool was_held = peer.held.has_value();
    if (was_held) record = *std::exchange(peer.held, std::nullopt);
    if (record.head.kind == RecordKind::Leave) {
      peer.connection->leave();
      return true;
    }
    if (!answer(peer, record)) {
      peer.held = record;
      return had_any || !was_held;
    }
    had_any = true;
    peer.connection->give_back(record);
  }
  return had_any;
}

bool Server::answer(Peer& peer, const Record& record) {
  bool is_held = false;
  const Status status = act(peer, record, is_held);
  if (!status.ok()) say_failed(*peer.connection, record.head.number, status);
  return !is_held;
}

Status Server::act(Peer& peer, const Record& record, bool& is_held) {
  switch (record.head.kind) {
    case RecordKind::Create:
      return create(*peer.connection, record);
    case RecordKind::Push:
    case RecordKind::Forward:
      return push(peer, record, is_held);
    case RecordKind::Install:
      return install(peer, record, is_held);
    case RecordKind::PullRange:
      return pulls_.range(peer.connection, record.head);
    case RecordKind::PullSteps:
      // A worker that goes on from them does not push them again: the backup has to have them.
      is_held = !pushes_.is_quiet(bucket_of_shard(record.head.table, record.head.shard));
      return is_held ? Status() : pulls_.steps(*peer.connection, record.head);
    case RecordKind::PullRows:
      return pulls_.rows(*peer.connection, record);
    case RecordKind::PullLoads:
      return pull_loads(*peer.connection, record.head);
    case RecordKind::HandOver:
      return hand_over(*peer.connection, record);
    case RecordKind::Offer:
      return offer(peer, record);
    case RecordKind::SaveShard:
    case RecordKind::ListRows:
    case RecordKind::SaveRows:
      return save(peer, record);
    default:
      return makes_no_sense(kRequest);
  }
}

Status Server::create(Connection& connection, const Record& record) {
  const std::string text(reinterpret_cast<const char*>(record.body.data()), record.body.size());
  auto spec = parse_table_spec(text);
  if (!spec.ok()) return spec.status();
  const uint32_t number = record.head.table;
  const auto [at, is_new] = state_.tables.try_emplace(number, number, spec.take(), state_.memory);
  if (is_new && dropped_.contains(number)) at->second.drop();
  say_done(connection, record.head.number);
  return Status();
}

Status Server::push(Peer& peer, const Record& record, bool& is_held) {
  const auto found = state_.tables.find(record.head.table);
  if (found == state_.tables.end()) return makes_no_sense(kRequest);
  ServerTable& table = found->second;
  auto push = read_push(record, table.spec());
  const bool is_forward = record.head.kind == RecordKind::Forward;
  if (!push || is_forward != (peer.from != kNoServer)) return makes_no_sense(kRequest);
  if (push->lent) RDMACOLL_RETURN_IF_ERROR(lent_.find(*push));
  const bool may_be_here = is_forward || state_.is_primary(push->parts[0].bucket);
  const bool is_of_dense = table.spec().kind == TableKind::Dense && !table.is_dropped();
  if (is_of_dense && may_be_here && !is_filler(push->head)) {
    auto made = table.dense(record.head.shard);
    if (!made.ok()) return made.status();
  }
  const bool is_taken = is_forward ? pushes_.take_forward(*peer.connection, peer.from, *push)
                                   : pushes_.take(peer.connection, *std::move(push));
  is_held = !is_taken;
  return Status();
}

Status Server::install(Peer& peer, const Record& record, bool& is_held) {
  if (peer.from == kNoServer) return makes_no_sense(kRequest);
  Status how;
  is_held = !installs_.take(record, peer.from, how);
  if (is_held) return Status();
  if (how.code() == StatusCode::Aborted) {
    say_elsewhere(*peer.connection, record.head.number);
    return Status();
  }
  if (how.ok()) say_done(*peer.connection, record.head.number);
  return how;
}

// --- balance -------------------------------------------------------------------------------------

Status Server::pull_loads(Connection& connection, const RecordHead& head) const {
  auto loads = state_.loads;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (!state_.is_primary(bucket)) loads[bucket] = 0;
  }
  std::byte* const body = connection.room(sizeof(loads));
  if (body == nullptr) return Status();
  std::memcpy(body, loads.data(), sizeof(loads));
  say_values(connection, head.number, sizeof(loads));
  return Status();
}

Status Server::hand_over(Connection& connection, const Record& record) {
  const auto buckets = read_buckets(record);
  if (!buckets) return makes_no_sense(kRequest);
  hand_over(*buckets);
  say_done(connection, record.head.number);
  return Status();
}

Status Server::offer(Peer& peer, const Record& record) {
  const auto buckets = read_buckets(record);
  if (!buckets || peer.from == kNoServer) return makes_no_sense(kRequest);
  for (const uint32_t bucket : *buckets) installs_.offer(bucket, peer.from);
  say_done(*peer.connection, record.head.number);
  return Status();
}

Status Server::save(Peer& peer, const Record& record) {
  const RecordKind kind = record.head.kind;
  const bool is_shard = kind == RecordKind::SaveShard;
  auto table = state_.table_of(record.head.table, is_shard ? TableKind::Dense : TableKind::Rows);
  if (!table.ok()) return table.status();
  Connection& connection = *peer.connection;
  if (is_shard) return save_shard(state_, *table.value(), connection, record, peer.copy);
  if (kind == RecordKind::ListRows) return list_rows(state_, *table.value(), connection, record);
  return save_rows(state_, *table.value(), connection, record);
}

}  // namespace rdmacoll::ps
