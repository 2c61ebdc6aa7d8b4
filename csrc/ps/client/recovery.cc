// Client: what is asked again, as the server that was asked is lost, or has not what was asked for.
// Pushes go first, and pulls behind them.
// Floor: ps/client. Thread: under the client's lock.
#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/printable.h"
#include "csrc/ps/client/client.h"

namespace rdmacoll::ps {
namespace {

constexpr int64_t kLookAgainNs = 2'000'000;
constexpr int64_t kSuspectAgainNs = 200'000'000;

// Whether some of its buckets have no backup.
bool has_one_server(const Redo& one, const BucketMap& map) {
  return std::ranges::any_of(buckets_of(one),
                             [&](uint32_t bucket) { return map.of(bucket).backup == kNoServer; });
}

}  // namespace

// Whether it could be asked for.
bool Client::look_for_map() {
  const int64_t asked_ns = surroundings_.clock().now_ns();
  auto newest = surroundings_.newest_map();
  if (!newest.ok()) return false;
  map_known_ns_ = asked_ns;
  if (newest.value().version() > map_.version()) map_ = newest.take();
  return true;
}

void Client::give_up(const Redo& one, const std::string& why) {
  const std::string& table = tables_.at(one.errand.head.table).name;
  finish(one.errand, Status(StatusCode::PeerFailed, "table '" + printable(table) + "': " + why));
}

void Client::suspect() {
  const int64_t now_ns = surroundings_.clock().now_ns();
  if (now_ns < suspect_ns_ || !redo_.empty()) return;
  suspect_ns_ = now_ns + kSuspectAgainNs;
  if (!look_for_map()) return;
  for (auto& [server, calls] : servers_) {
    if (calls.open() > 0 && !map_.has_primary(server)) calls.give_up();
  }
}

// Servers count some of the pushes that they refuse, and none that they have no room for: the next
// ones of this worker to the bucket would be too soon for ever. One of nothing with the same number
// counts once, whichever it was. Nobody waits for it; those behind it come in their turn. Rows that
// are pushed are made, whatever room there is.
void Client::fill_gap(const RecordHead& refused, std::span<const std::byte> sent) {
  const bool is_push = refused.kind == RecordKind::Push;
  if (!is_push || tables_.at(refused.table).kind != TableKind::Dense) return;
  if (is_filler(refused)) return;
  Redo one = filler(refused, sent);
  begin(one.errand);
  redo_.push_back(std::move(one));
}

bool Client::redo(const Limit& limit) {
  const int64_t now_ns = surroundings_.clock().now_ns();
  if (redo_.empty() || now_ns < look_again_ns_) return false;
  look_again_ns_ = now_ns + kLookAgainNs;
  const bool knows_map = look_for_map();
  bool had_any = false;
  const bool pushes_wait = std::ranges::any_of(
      redo_, [](const Redo& one) { return one.errand.head.kind == RecordKind::Push; });
  for (Redo& whole : std::exchange(redo_, {})) {
    const bool is_push = whole.errand.head.kind == RecordKind::Push;
    if (!is_push && pushes_wait) {
      redo_.push_back(std::move(whole));
      continue;
    }
    auto parts = split(whole, tables_.at(whole.errand.head.table), map_);
    begin(whole.errand, parts.size() - 1);
    for (auto& [server, part] : parts) {
      const Asked asked = redo(part, server, knows_map, limit);
      if (asked == Asked::NotYet) redo_.push_back(std::move(part));
      had_any |= asked != Asked::NotYet;
    }
  }
  return had_any;
}

// Nobody else says in the map that a bucket has other servers.
bool Client::have_backups_ended(const Redo& one, const Limit& limit) {
  const uint64_t version = map_.version();
  const auto has_ended = [&](uint32_t bucket) {
    const ServerId backup = map_.of(bucket).backup;
    if (is_reached(backup)) return false;
    auto connection = surroundings_.reach(backup, limit);
    if (connection.ok()) use(backup, connection.take());
    return connection.status().code() == StatusCode::PeerFailed;
  };
  const bool has_any = std::ranges::any_of(buckets_of(one), has_ended);
  return has_any && look_for_map() && map_.version() == version;
}

// knows_map: the map is the newest, so a server that is lost stays what it is there.
Client::Asked Client::redo(Redo& one, ServerId server, bool knows_map, const Limit& limit) {
  if (server == kNoServer) {
    give_up(one, "a part of it is lost with the servers that had it");
    return Asked::Never;
  }
  if (!is_reached(server)) {
    auto connection = surroundings_.reach(server, limit);
    const bool has_ended = connection.status().code() == StatusCode::PeerFailed;
    if (has_ended && knows_map && has_one_server(one, map_)) {
      give_up(one, "server " + std::to_string(server) +
                       " has ended, and no other one has what it had; with replicas=2 one has");
      return Asked::Never;
    }
    if (has_ended && knows_map && have_backups_ended(one, limit)) {
      give_up(one, "server " + std::to_string(server) +
                       " has ended, and so has the other one that had what it had");
      return Asked::Never;
    }
    if (!connection.ok()) return Asked::NotYet;
    use(server, connection.take());
  }
  const std::vector<std::byte>& body = one.body;
  const bool is_asked =
      try_ask(server, one.errand, body.size(), [&](std::byte* to) { std::ranges::copy(body, to); });
  return is_asked ? Asked::Yes : Asked::NotYet;
}

}  // namespace rdmacoll::ps
