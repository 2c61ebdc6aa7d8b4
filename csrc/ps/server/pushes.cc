// Pushes. Floor: ps/server. Thread: the server's.
#include "csrc/ps/server/pushes.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/printable.h"
#include "csrc/ps/server/answers.h"
#include "csrc/ps/server/saves.h"

namespace rdmacoll::ps {
namespace {

void apply_range(DenseShard& shard, const Push& push) {
  if (push.as() == PushAs::Generation) {
    shard.begin_generation(push.generation(), push.head.step);
  } else if (push.head.step > 0) {
    shard.push_step(push.step(), push.gradient());
  } else {
    shard.push(push.as(), push.head.first, push.values, push.rates);
  }
}

bool is_step(const Push& push) { return push.as() == PushAs::Gradient && push.head.step > 0; }

// What a worker is told of its step.
Status how_taken(const ServerTable& table, const PaceSteps& pace, WorkerStep step) {
  if (pace.is_of_it(step)) return Status();
  return Status(StatusCode::InvalidArgument,
                "rank " + std::to_string(step.rank) + " is none of the " +
                    std::to_string(pace.reached().size()) + " workers that go in step in table '" +
                    printable(table.spec().name) +
                    "' now: another number of them has begun since it was made here; make it anew");
}

}  // namespace

Pushes::Groups Pushes::by_backup(const Push& push) const {
  Groups groups;
  for (uint32_t part = 0; part < push.parts.size(); ++part) {
    const uint32_t bucket = push.parts[part].bucket;
    const ServerId known = state_.map.of(bucket).backup;
    const ServerId joining = installs_.joining(bucket);
    if (known != kNoServer) groups[known].push_back(part);
    if (joining != kNoServer && joining != known) groups[joining].push_back(part);
  }
  return groups;
}

// Of one that is lost none is needed.
bool Pushes::have_room(const Groups& groups, const Push& push, const TableSpec& spec) {
  return std::ranges::all_of(groups, [&](const auto& group) {
    if (servers_.is_lost(group.first)) return true;
    Calls* const calls = servers_.find(group.first);
    return calls != nullptr && calls->tell(push.head.table, spec) &&
           calls->room(Forward{push, group.second, spec, group.first}.bytes(), 0) != nullptr;
  });
}

// There is room for it.
Pushes::AnswerPtr Pushes::hand_on(ServerId backup, const Push& push,
                                  std::span<const uint32_t> parts, const TableSpec& spec) {
  auto answer = std::make_shared<Answer>();
  Calls* const calls = servers_.find(backup);
  if (calls == nullptr) {
    *answer = {true, Status(StatusCode::PeerFailed, "the backup is lost")};
    return answer;
  }
  const Forward forward{push, parts, spec, backup};
  forward.write(calls->room(forward.bytes(), 0));
  RecordHead head = forward.head();
  head.kind = RecordKind::Forward;
  calls->make(head, {.ended = [answer](const Status& how, std::span<const std::byte>) {
                *answer = {true, how};
              }});
  return answer;
}

bool Pushes::take(const std::shared_ptr<Connection>& connection, Push push) {
  const int64_t now_ns = state_.clock.now_ns();
  const bool is_here = std::ranges::all_of(push.parts, [&](const PushPart& part) {
    return state_.is_primary(part.bucket) && now_ns >= state_.serves_from_ns[part.bucket] &&
           state_.applied.turn(part.bucket, push.head.worker, part.push) != Applied::Turn::TooSoon;
  });
  const bool is_handed_over = std::ranges::any_of(
      push.parts, [&](const PushPart& part) { return state_.hands_over[part.bucket]; });
  // A server that does not hear of the map any more would wait for it for ever.
  if (!is_here || (is_handed_over && now_ns >= state_.leased_until_ns)) {
    say_elsewhere(*connection, push.head.number);
    return true;
  }
  const bool is_being_told = std::ranges::any_of(
      push.parts, [&](const PushPart& part) { return installs_.is_being_told(part.bucket); });
  if (is_handed_over || is_being_told) return false;
  ServerTable& table = state_.tables.at(push.head.table);
  const Groups groups = by_backup(push);
  if (!have_room(groups, push, table.spec())) return false;
  for (PushPart& part : push.parts) part.epoch = state_.map.of(part.bucket).epoch;
  apply(table, push);
  Waiting waiting{.connection = connection, .number = push.head.number, .how = table.check_there()};
  for (const auto& [backup, parts] : groups) {
    Waiting::Handed handed{.to = backup, .answer = hand_on(backup, push, parts, table.spec())};
    for (const uint32_t part : parts) handed.parts.push_back(push.parts[part]);
    waiting.handed.push_back(std::move(handed));
  }
  const bool may_step = table.spec().pace && !is_filler(push.head);
  if (waiting.how.ok() && may_step) note_pace(table, push, waiting);
  if (waiting.handed.empty() && !waiting.borrowed) {
    answer(waiting);
  } else {
    waiting_.push_back(std::move(waiting));
  }
  return true;
}

void Pushes::note_pace(const ServerTable& table, const Push& push, Waiting& waiting) {
  const uint32_t shard = push.head.shard;
  const PaceSteps& pace = *table.all_dense().at(shard).pace();
  give_back(table, shard, waiting.handed);
  if (!is_step(push)) return;
  waiting.how = how_taken(table, pace, push.step());
  if (pace.borrows(push.step())) waiting.borrowed = {table.id(), shard, push.step()};
}

void Pushes::give_back(const ServerTable& table, std::optional<uint32_t> shard,
                       const std::vector<Waiting::Handed>& also) {
  for (Waiting& waiting : waiting_) {
    const auto& borrowed = waiting.borrowed;
    if (!borrowed || borrowed->table != table.id()) continue;
    if (shard && borrowed->shard != *shard) continue;
    waiting.how = table.check_there();
    if (waiting.how.ok()) {
      const PaceSteps& pace = *table.all_dense().at(borrowed->shard).pace();
      if (pace.borrows(borrowed->step)) continue;
      waiting.how = how_taken(table, pace, borrowed->step);
    }
    waiting.handed.insert(waiting.handed.end(), also.begin(), also.end());
    waiting.borrowed.reset();
  }
}

void Pushes::answer(const Waiting& waiting) {
  if (waiting.how.ok()) return say_done(*waiting.connection, waiting.number);
  say_failed(*waiting.connection, waiting.number, waiting.how);
}

bool Pushes::is_quiet(uint32_t bucket) const {
  return std::ranges::none_of(waiting_, [&](const Waiting& waiting) {
    return std::ranges::any_of(waiting.handed, [&](const Waiting::Handed& handed) {
      return std::ranges::any_of(handed.parts,
                                 [&](const PushPart& part) { return part.bucket == bucket; });
    });
  });
}

bool Pushes::take_forward(Connection& connection, ServerId from, const Push& push) {
  bool is_mine = true;
  for (const PushPart& part : push.parts) {
    const BucketMap::Place& place = state_.map.of(part.bucket);
    if (part.epoch > place.epoch) return false;
    const bool is_backup = part.epoch == place.epoch && place.backup == state_.me;
    is_mine = is_mine && place.primary == from &&
              (is_backup || installs_.was_told(part.bucket, from, part.epoch));
    // They come in the primary's order.
    is_mine = is_mine && state_.applied.turn(part.bucket, push.head.worker, part.push) !=
                             Applied::Turn::TooSoon;
  }
  if (!is_mine) {
    say_elsewhere(connection, push.head.number);
    return true;
  }
  apply(state_.tables.at(push.head.table), push);
  say_done(connection, push.head.number);
  return true;
}

// Of its parts, those that are not applied yet. Of a table that was dropped, and where one was
// refused, they only count: the worker's next pushes to the bucket come behind them.
void Pushes::apply(ServerTable& table, const Push& push) {
  const TableSpec& spec = table.spec();
  uint64_t row = 0;
  for (const PushPart& part : push.parts) {
    const uint64_t end = row + part.rows;
    const auto turn = state_.applied.turn(part.bucket, push.head.worker, part.push);
    if (turn == Applied::Turn::Next) {
      state_.applied.note(part.bucket, push.head.worker, part.push);
      const uint64_t elements =
          spec.kind == TableKind::Dense ? push.head.count : part.rows * spec.dim;
      state_.add_load(part.bucket, elements * sizeof(float));
      if (table.is_dropped() || is_filler(push.head)) {
        // It has no values any more, or none are pushed: what they would be for may not be made.
      } else if (push.as() == PushAs::Restored) {
        restore(table, push, part, row);
      } else if (spec.kind == TableKind::Dense) {
        apply_range(table.known_dense(push.head.shard), push);
      } else {
        RowShard& shard = table.rows(part.bucket);
        for (uint64_t i = row; i < end; ++i) {
          shard.push(push.as(), push.id(i), push.values.data() + i * spec.dim, push.rates);
        }
      }
    }
    row = end;
  }
  ++count_;
}

// A push whose backup is lost, or refuses it, waits until the map says that the bucket has another
// backup or none. If it still has this primary, the push is done then: another backup begins with
// all that this server has. Who was told of the bucket, and is lost, may be named by the next map
// all the same, and lacks the push; before it was told all of it, no map names it. A server that
// does not hear of the map any more sends its workers to where that is. A gradient that is borrowed
// waits for the rest of its step.
Pushes::Verdict Pushes::verdict(const Waiting& waiting) {
  const bool is_leased = state_.clock.now_ns() < state_.leased_until_ns;
  bool waits = false;
  for (const Waiting::Handed& handed : waiting.handed) {
    if (!handed.answer->has_come) {
      waits = true;
      continue;
    }
    if (handed.answer->status.ok()) continue;
    for (const PushPart& part : handed.parts) {
      if (!state_.is_primary(part.bucket) || !is_leased) return Verdict::Elsewhere;
      const BucketMap::Place& place = state_.map.of(part.bucket);
      const bool names_it = place.backup == handed.to && place.epoch == part.epoch + 1;
      if (place.epoch != part.epoch && !names_it) continue;
      const bool is_backup = place.backup == handed.to;
      if (!is_backup && installs_.joining(part.bucket) != handed.to) continue;
      if (is_backup || installs_.may_be_named(part.bucket)) failed_[part.bucket] = place.epoch;
      waits = true;
    }
  }
  if (waits) return Verdict::Waits;
  if (!waiting.borrowed) return Verdict::Done;
  const auto& [table, shard, step] = *waiting.borrowed;
  const bool is_here = state_.is_primary(bucket_of_shard(table, shard)) && is_leased;
  return is_here ? Verdict::Borrows : Verdict::Elsewhere;
}

// Of a worker that is gone nobody is told. But the backup lacks what it has not confirmed, and
// others go on from it.
bool Pushes::settle() {
  for (Waiting& waiting : waiting_) {
    if (waiting.borrowed && verdict(waiting) == Verdict::Borrows) waiting.handed.clear();
  }
  return std::erase_if(waiting_, [&](const Waiting& waiting) {
           const Verdict how = verdict(waiting);
           const bool is_gone = !waiting.connection->failure().ok();
           if (how == Verdict::Waits) return false;
           if (how == Verdict::Borrows || is_gone) return is_gone;
           if (how == Verdict::Done) answer(waiting);
           if (how == Verdict::Elsewhere) say_elsewhere(*waiting.connection, waiting.number);
           return true;
         }) > 0;
}

}  // namespace rdmacoll::ps
