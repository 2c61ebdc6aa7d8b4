// Installs. Floor: ps/server. Thread: the server's.
#include "csrc/ps/server/installs.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace rdmacoll::ps {
namespace {

// Of what a server has not answered yet, when it is told more.
constexpr size_t kMostOpen = 4;
// Until a bucket that nobody could take is offered again: there may be no memory for it.
constexpr int64_t kAgainNs = 1'000'000'000;

constexpr const char* kInstall = "what is told of a bucket";

std::byte* put(std::byte* to, const void* from, uint64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return to + bytes;
}

}  // namespace

// --- the primary ---------------------------------------------------------------------------------

ServerId Installs::joining(uint32_t bucket) const {
  const auto found = joining_.find(bucket);
  return found == joining_.end() ? kNoServer : found->second->server;
}

bool Installs::is_lost(const Joining& joining) const {
  return joining.has_failed || servers_.is_lost(joining.server);
}

bool Installs::is_ready(const Joining& joining) const {
  return joining.is_told && joining.open == 0 && !is_lost(joining);
}

ServerId Installs::ready(uint32_t bucket) const {
  const auto found = joining_.find(bucket);
  return found != joining_.end() && is_ready(*found->second) ? found->second->server : kNoServer;
}

bool Installs::has_failed(uint32_t bucket) const {
  return may_be_named(bucket) && is_lost(*joining_.at(bucket));
}

void Installs::offer(uint32_t bucket, ServerId by) {
  const bool is_it = state_.map.of(bucket).backup == by || joining(bucket) == by;
  if (state_.is_primary(bucket) && !is_it) offers_[bucket] = by;
}

// No map names those who were not told all of it.
void Installs::let_go_of_lost() {
  std::erase_if(joining_, [&](const auto& one) {
    const auto& [bucket, joining] = one;
    if (is_ready(*joining)) joining->was_ready = true;
    if (joining->was_ready || !is_lost(*joining)) return false;
    not_before_ns_[bucket] = state_.clock.now_ns() + kAgainNs;
    if (is_being_told(bucket)) telling_.reset();
    return true;
  });
}

bool Installs::turn() {
  let_go_of_lost();
  if (!telling_) choose();
  bool was_sent = false;
  while (telling_ && send_next()) was_sent = true;
  return was_sent;
}

void Installs::count_alone() {
  alone_ = 0;
  for (uint32_t bucket = 0; state_.keeps_backups && bucket < kBuckets; ++bucket) {
    const bool has_none = state_.map.of(bucket).backup == kNoServer;
    if (state_.is_primary(bucket) && has_none) ++alone_;
  }
}

// The next bucket that another server wants to be the backup of; or that has none, and one of the
// servers that could be it.
void Installs::choose() {
  if (alone_ == 0 && offers_.empty()) return;
  const std::vector<ServerId> servers = servers_.for_backups();
  if (servers.empty()) return;
  const int64_t now_ns = state_.clock.now_ns();
  for (uint32_t looked = 0; looked < kBuckets; ++looked) {
    const uint32_t bucket = next_;
    next_ = (next_ + 1) % kBuckets;
    const bool may_be_told = state_.is_primary(bucket) && !state_.hands_over[bucket] &&
                             !joining_.contains(bucket) && now_ns >= not_before_ns_[bucket];
    if (!may_be_told) continue;
    if (const auto offer = offers_.extract(bucket); offer && servers_.find(offer.mapped())) {
      return tell(bucket, offer.mapped());
    }
    if (state_.keeps_backups && state_.map.of(bucket).backup == kNoServer) {
      return tell(bucket, servers[bucket / servers.size() % servers.size()]);
    }
  }
}

void Installs::tell(uint32_t bucket, ServerId to) {
  const auto joining = std::make_shared<Joining>();
  joining->server = to;
  joining_[bucket] = joining;
  Telling telling{.bucket = bucket};
  const uint32_t epoch = state_.map.of(bucket).epoch;
  std::vector<InstallPushes> pushes;
  for (const auto& [worker, last] : state_.applied.of(bucket)) pushes.push_back({worker, last});
  const InstallHead begin{.what = InstallHead::What::Begin, .bucket = bucket, .epoch = epoch};
  const uint64_t bytes = pushes.size() * sizeof(InstallPushes);
  telling.pieces.push_back({{.kind = RecordKind::Install},
                            sizeof(begin) + bytes,
                            [begin, pushes, bytes](std::byte* body) {
                              put(put(body, &begin, sizeof(begin)), pushes.data(), bytes);
                            }});
  for (auto& [number, table] : state_.tables) {
    if (table.spec().kind == TableKind::Dense) {
      add_dense(telling, epoch, table);
    } else {
      add_rows(telling, epoch, table);
    }
  }
  telling_ = std::move(telling);
}

// What is written is looked at when it is: nothing is pushed to the bucket before that.
void Installs::add_dense(Telling& telling, uint32_t epoch, ServerTable& table) const {
  for (const auto& [number, shard_here] : table.all_dense()) {
    if (bucket_of_shard(table.id(), number) != telling.bucket) continue;
    const DenseShard* const shard = &shard_here;
    const uint64_t bytes = shard->elements() * sizeof(float);
    for (size_t part = 0; part <= shard->state().size(); ++part) {
      const bool is_values = part == 0;
      const InstallHead head{
          .what = is_values ? InstallHead::What::Values : InstallHead::What::State,
          .bucket = telling.bucket,
          .epoch = epoch,
          .which = static_cast<uint32_t>(is_values ? 0 : part - 1),
          .number = shard->pushes()};
      telling.pieces.push_back({{.kind = RecordKind::Install,
                                 .table = table.id(),
                                 .shard = static_cast<uint32_t>(number)},
                                sizeof(head) + bytes,
                                [head, shard, bytes, is_values](std::byte* body) {
                                  const float* const from = is_values
                                                                ? shard->values().data()
                                                                : shard->state()[head.which].data();
                                  put(put(body, &head, sizeof(head)), from, bytes);
                                },
                                table.id()});
    }
    if (shard->pace() != nullptr) add_pace(telling, epoch, table.id(), number, *shard);
  }
}

void Installs::add_pace(Telling& telling, uint32_t epoch, uint32_t table, uint64_t shard,
                        const DenseShard& from) {
  const auto add = [&](const InstallHead& head, const void* data, uint64_t bytes) {
    telling.pieces.push_back(
        {{.kind = RecordKind::Install, .table = table, .shard = static_cast<uint32_t>(shard)},
         sizeof(head) + bytes,
         [head, data, bytes](std::byte* body) { put(put(body, &head, sizeof(head)), data, bytes); },
         table});
  };
  const auto& reached = from.pace()->reached();
  add({.what = InstallHead::What::Steps,
       .bucket = telling.bucket,
       .epoch = epoch,
       .number = from.pace()->generation()},
      reached.data(), reached.size() * sizeof(reached[0]));
  for (const auto& [step, gradient] : from.pace()->gathered()) {
    add({.what = InstallHead::What::Gathered,
         .bucket = telling.bucket,
         .epoch = epoch,
         .which = step.second,
         .number = step.first,
         .rates = gradient.it.rates},
        gradient.it.values.data(), gradient.it.values.size_bytes());
  }
}

void Installs::add_rows(Telling& telling, uint32_t epoch, ServerTable& table) const {
  const RowShard* const shard = table.find_rows(telling.bucket);
  if (shard == nullptr) return;
  const uint64_t row_bytes = sizeof(InstallRow) + shard->stride() * sizeof(float);
  const uint64_t most = std::max<uint64_t>((kMostBodyBytes - sizeof(InstallHead)) / row_bytes, 1);
  const InstallHead head{.what = InstallHead::What::Rows, .bucket = telling.bucket, .epoch = epoch};
  for (uint64_t first = 0; first < shard->rows(); first += most) {
    const uint64_t end = std::min(first + most, shard->rows());
    telling.pieces.push_back({{.kind = RecordKind::Install, .table = table.id()},
                              sizeof(head) + (end - first) * row_bytes,
                              [head, shard, first, end](std::byte* body) {
                                std::byte* to = put(body, &head, sizeof(head));
                                for (uint64_t i = first; i < end; ++i) {
                                  const RowShard::Saved row = shard->save(shard->places()[i]);
                                  const InstallRow said{row.id, row.pushes};
                                  to = put(to, &said, sizeof(said));
                                  to = put(to, row.floats.data(), row.floats.size_bytes());
                                }
                              },
                              table.id()});
  }
}

// False: there is no room now, or no more to be sent.
bool Installs::send_next() {
  const auto joining = joining_.at(telling_->bucket);
  Calls* const calls = servers_.find(joining->server);
  if (calls == nullptr) {
    joining->has_failed = true;
    telling_.reset();
    return false;
  }
  if (calls->open() >= kMostOpen) return false;
  Piece& piece = telling_->pieces.front();
  if (piece.table && !calls->tell(*piece.table, state_.tables.at(*piece.table).spec())) {
    return false;
  }
  std::byte* const body = calls->room(piece.bytes, 0);
  if (body == nullptr) return false;
  piece.write(body);
  RecordHead head = piece.head;
  head.bytes = static_cast<uint32_t>(piece.bytes);
  ++joining->open;
  calls->make(head, {.ended = [joining](const Status& how, std::span<const std::byte>) {
                --joining->open;
                if (!how.ok()) joining->has_failed = true;
              }});
  telling_->pieces.pop_front();
  if (telling_->pieces.empty()) end_telling();
  return true;
}

void Installs::end_telling() {
  joining_.at(telling_->bucket)->is_told = true;
  telling_.reset();
}

void Installs::drop(uint32_t table) {
  if (!telling_) return;
  std::erase_if(telling_->pieces, [&](const Piece& piece) { return piece.table == table; });
  if (telling_->pieces.empty()) end_telling();
}

// --- the other server ----------------------------------------------------------------------------

bool Installs::was_told(uint32_t bucket, ServerId from, uint32_t epoch) const {
  return told_by_[bucket].from == from && told_by_[bucket].epoch == epoch;
}

bool Installs::take(const Record& record, ServerId from, Status& how) {
  InstallHead head;
  how = makes_no_sense(kInstall);
  if (record.body.size() < sizeof(head)) return true;
  std::memcpy(&head, record.body.data(), sizeof(head));
  if (head.bucket >= kBuckets) return true;
  const BucketMap::Place& place = state_.map.of(head.bucket);
  if (head.epoch > place.epoch) return false;
  if (head.epoch < place.epoch || place.primary != from) {
    how = Status(StatusCode::Aborted, "the bucket is another server's");
    return true;
  }
  how = load(record, head);
  if (how.code() == StatusCode::System) without_room_.insert(head.bucket);
  if (how.ok() && head.what == InstallHead::What::Begin) told_by_[head.bucket] = {from, head.epoch};
  return true;
}

Status Installs::load(const Record& record, const InstallHead& head) {
  const std::span<const std::byte> rest = record.body.subspan(sizeof(head));
  if (head.what == InstallHead::What::Begin) {
    if (rest.size() % sizeof(InstallPushes) != 0) return makes_no_sense(kInstall);
    Applied::OfBucket applied;
    for (uint64_t at = 0; at < rest.size(); at += sizeof(InstallPushes)) {
      InstallPushes pushes;
      std::memcpy(&pushes, rest.data() + at, sizeof(pushes));
      applied[pushes.worker] = pushes.last;
    }
    state_.applied.set(head.bucket, std::move(applied));
    for (auto& [number, table] : state_.tables) table.forget_rows(head.bucket);
    return Status();
  }
  const auto found = state_.tables.find(record.head.table);
  if (found == state_.tables.end()) return makes_no_sense(kInstall);
  ServerTable& table = found->second;
  if (table.is_dropped()) return Status();  // who tells of it hears so, too
  const TableSpec& spec = table.spec();
  if (head.what == InstallHead::What::Rows) {
    if (spec.kind != TableKind::Rows) return makes_no_sense(kInstall);
    RowShard& shard = table.rows(head.bucket);
    const uint64_t row_bytes = sizeof(InstallRow) + shard.stride() * sizeof(float);
    if (rest.size() % row_bytes != 0) return makes_no_sense(kInstall);
    std::vector<float> floats(shard.stride());
    for (uint64_t at = 0; at < rest.size(); at += row_bytes) {
      InstallRow row;
      std::memcpy(&row, rest.data() + at, sizeof(row));
      std::memcpy(floats.data(), rest.data() + at + sizeof(row), floats.size() * sizeof(float));
      shard.load({row.id, row.pushes, floats});
    }
    return Status();
  }
  const bool is_dense = spec.kind == TableKind::Dense && record.head.shard < spec.shards() &&
                        bucket_of_shard(table.id(), record.head.shard) == head.bucket;
  if (!is_dense) return makes_no_sense(kInstall);
  auto made = table.dense(record.head.shard);
  if (!made.ok()) return made.status();
  return load_dense(head, rest, *made.value()) ? Status() : makes_no_sense(kInstall);
}

// False: it makes no sense.
bool Installs::load_dense(const InstallHead& head, std::span<const std::byte> rest,
                          DenseShard& shard) {
  if (rest.size() % sizeof(float) != 0) return false;
  if (head.what == InstallHead::What::Steps) {
    std::vector<uint32_t> reached(rest.size() / sizeof(uint32_t));
    if (!reached.empty()) std::memcpy(reached.data(), rest.data(), rest.size());
    const bool is_one = reached.size() <= kMostPaced && head.number <= UINT32_MAX;
    if (shard.pace() == nullptr || !is_one) return false;
    shard.pace()->load(static_cast<uint32_t>(head.number), std::move(reached));
    return true;
  }
  std::vector<float> floats(rest.size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), rest.data(), rest.size());
  if (head.what == InstallHead::What::Gathered) {
    const uint64_t step = head.number;
    const bool can_be = step > 0 && step <= UINT32_MAX && check(shard.optimizer(), head.rates).ok();
    if (!can_be || !shard.can_gather(head.which, floats.size())) return false;
    shard.pace()->keep({head.which, static_cast<uint32_t>(step)}, {floats, head.rates});
    return true;
  }
  if (floats.size() != shard.elements()) return false;
  if (head.what == InstallHead::What::Values) {
    shard.load_values(head.number, floats);
    return true;
  }
  if (head.what != InstallHead::What::State || head.which >= shard.state().size()) return false;
  shard.load_state(head.which, floats);
  return true;
}

void Installs::adopt(const BucketMap& before) {
  count_alone();
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const BucketMap::Place& place = state_.map.of(bucket);
    if (place.epoch == before.of(bucket).epoch) continue;
    if (has_failed(bucket)) not_before_ns_[bucket] = state_.clock.now_ns() + kAgainNs;
    joining_.erase(bucket);
    offers_.erase(bucket);
    without_room_.erase(bucket);
    if (is_being_told(bucket)) telling_.reset();
    // What was handed on before the map said so is taken as long as nothing else has changed.
    Told& told = told_by_[bucket];
    const bool has_joined =
        place.primary == told.from && place.backup == state_.me && place.epoch == told.epoch + 1;
    if (!has_joined) told = {};
  }
}

}  // namespace rdmacoll::ps
