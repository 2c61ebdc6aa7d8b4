"""The bugs that are planted into the parameter server: mutants.py has them found."""

from __future__ import annotations

from mutant import Mutant

PULLS = "csrc/ps/server/pulls.cc"
PUSHES = "csrc/ps/server/pushes.cc"
INSTALLS = "csrc/ps/server/installs.cc"
SERVER = "csrc/ps/server/server.cc"
CALLS = "csrc/ps/wire/calls.cc"
CLIENT = "csrc/ps/client/client.cc"
DIRECT = "csrc/ps/client/direct.cc"
RECOVERY = "csrc/ps/client/recovery.cc"
PUSH = "csrc/ps/wire/push.cc"
SHARD = "csrc/ps/table/dense_shard.cc"
PACE_STEPS = "csrc/ps/table/pace_steps.cc"

SERVERS = (
    Mutant(
        "a push is acknowledged before the backup has it",
        PUSHES,
        "if (waiting.handed.empty() && !waiting.borrowed) {",
        "if (true) {",
    ),
    Mutant(
        "a worker is told that a step is reached before it is",
        PULLS,
        "if (head.step > 0 && shard->pace()->slowest() < head.step) return false;",
        "if (head.count > 0 && shard->pace()->slowest() < head.step) return false;",
    ),
    Mutant(
        "a push is done before the backup has read what is lent",
        PUSHES,
        "waiting.handed.push_back(std::move(handed));",
        "if (!push.lent) waiting.handed.push_back(std::move(handed));",
    ),
    Mutant(
        "a push that is sent again is applied again",
        PUSHES,
        "if (turn == Applied::Turn::Next) {",
        "if (turn != Applied::Turn::TooSoon) {",
    ),
    Mutant(
        "a push is done although its backup is lost and the map does not know",
        PUSHES,
        "if (place.epoch != part.epoch && !names_it) continue;",
        "if (!names_it) continue;",
    ),
    Mutant(
        "a push is done although the map names a backup that lacks it",
        PUSHES,
        "if (place.epoch != part.epoch && !names_it) continue;",
        "if (place.epoch != part.epoch) continue;",
    ),
    Mutant(
        "a server that is being told of a bucket is not handed what is pushed to it",
        PUSHES,
        "if (joining != kNoServer && joining != known) groups[joining].push_back(part);",
        "",
    ),
    Mutant(
        "pushes to a bucket go on while a server is told what is in it",
        PUSHES,
        "if (is_handed_over || is_being_told) return false;",
        "if (is_handed_over && (is_handed_over || is_being_told)) return false;",
    ),
    Mutant(
        "a new primary does not wait for the lease of the one before it",
        SERVER,
        "if (is_new) state_.serves_from_ns[bucket] = was_handed_over ? now_ns : now_ns + kLeaseNs;",
        "if (is_new) state_.serves_from_ns[bucket] = now_ns;",
    ),
    Mutant(
        "a server believes its map for ever",
        SERVER,
        "state_.leased_until_ns = std::max(state_.leased_until_ns, known_ns + kLeaseNs);",
        "state_.leased_until_ns = INT64_MAX + 0 * known_ns;",
    ),
    Mutant(
        "a bucket's next backup is named before it has all of it",
        INSTALLS,
        "return joining.is_told && joining.open == 0 && !is_lost(joining);",
        "return !is_lost(joining);",
    ),
    Mutant(
        "a bucket's next backup is not told which pushes are applied",
        INSTALLS,
        "applied[pushes.worker] = pushes.last;",
        "applied[pushes.worker] = 0;",
    ),
    Mutant(
        "what was asked of a server that is lost is written over",
        CALLS,
        "connection_->keep(open_.begin()->second.record);",
        "connection_->keep(UINT64_MAX);",
    ),
    Mutant(
        "what a server has not now is taken for done",
        CLIENT,
        "if (!is_lost && !is_unlent && !is_early) return finish(errand, how);",
        "if (!is_unlent && !is_early && (!is_lost || how.code() == StatusCode::Aborted)) "
        "return finish(errand, {});",
    ),
    Mutant(
        "a worker's step counts again when the worker is started again",
        SHARD,
        "if (!pace_->note(step)) return;",
        "pace_->note(step);",
    ),
    Mutant(
        "a pull waits for no other worker",
        PULLS,
        "if (head.step > 0 && shard->pace()->slowest() < head.step) return false;",
        "",
    ),
    Mutant(
        "a bucket's next backup is not told of steps that are not whole",
        INSTALLS,
        "if (shard->pace() != nullptr) add_pace(telling, epoch, table.id(), number, *shard);",
        "",
    ),
    Mutant(
        "a worker of an earlier generation goes in step with those of the next one",
        PACE_STEPS,
        "return step.generation == generation_ && step.rank < reached_.size();",
        "return step.rank < reached_.size();",
    ),
    Mutant(
        "what workers of an earlier generation had pushed of a step is kept for the next one",
        PACE_STEPS,
        "gathered_.clear();",
        "",
    ),
    Mutant(
        "the next generation begins behind a step that was not made",
        SHARD,
        "pace_->begin(generation, is_sync_ ? pace_->slowest() : step);",
        "pace_->begin(generation, step);",
    ),
    Mutant(
        "a bucket's next backup is not told of which generation the workers are",
        INSTALLS,
        ".number = from.pace()->generation()},",
        "},",
    ),
    Mutant(
        "a worker reads of a server that may have been replaced long before",
        DIRECT,
        "return map_age_ns <= kLeaseNs / 2 || look_for_map();",
        "return map_age_ns >= 0 || look_for_map();",
    ),
    Mutant(
        "a worker reads although it cannot learn whether the server was replaced",
        DIRECT,
        "return map_age_ns <= kLeaseNs / 2 || look_for_map();",
        "return map_age_ns <= kLeaseNs / 2 || look_for_map() || true;",
    ),
    Mutant(
        "a worker reads although what it has pushed is not acknowledged",
        DIRECT,
        "if (head.step > 0 || open_pushes(head) > 0 || !redo_.empty()) return false;",
        "if (head.step > 0 || !redo_.empty()) return false;",
    ),
    Mutant(
        "a server that hands a bucket over still shows what is in it",
        SERVER,
        "if (state_.hands_over[bucket_of_shard(id, number)]) shard.hide();",
        "",
    ),
    Mutant(
        "a worker reads rows although what it has pushed is not acknowledged",
        DIRECT,
        "return open_row_pushes_[table] == 0 && redo_.empty() && knows_primaries();",
        "return redo_.empty() && knows_primaries();",
    ),
    Mutant(
        "a worker reads rows of a server that may have been replaced",
        DIRECT,
        "return open_row_pushes_[table] == 0 && redo_.empty() && knows_primaries();",
        "return open_row_pushes_[table] == 0 && redo_.empty();",
    ),
    Mutant(
        "a server that hands a bucket over still shows its rows",
        SERVER,
        "if (rows != nullptr && state_.hands_over[bucket]) rows->hide();",
        "",
    ),
    Mutant(
        "the pieces of a push of rows that is sent again are not counted",
        RECOVERY,
        "begin(whole.errand, parts.size() - 1);",
        "whole.errand.batch->add_calls(parts.size() - 1);",
    ),
    Mutant(
        "a push to a table that was dropped does not count",
        PUSHES,
        "state_.applied.note(part.bucket, push.head.worker, part.push);",
        "if (table.check_there().ok())"
        " state_.applied.note(part.bucket, push.head.worker, part.push);",
    ),
    Mutant(
        "what comes behind a push that was refused waits for it for ever",
        CLIENT,
        "if (!how.ok() && !is_lost && !is_unlent) fill_gap(errand.head, sent);",
        "",
    ),
    Mutant(
        "a pull is done although what was pushed before it is asked again behind it",
        CLIENT,
        "if (is_push) ++redone_;",
        "",
    ),
    Mutant(
        "a table that was dropped comes back with a server that was started again",
        SERVER,
        "if (is_new && dropped_.contains(number)) at->second.drop();",
        "",
    ),
    Mutant(
        "the rates of the worker that comes last count for all",
        SHARD,
        "pace_->rates(step, gradient.rates));",
        "gradient.rates);",
    ),
    Mutant(
        "a gradient that is borrowed is done before its step is whole",
        PUSHES,
        "if (pace.borrows(push.step())) waiting.borrowed = {table.id(), shard, push.step()};",
        "",
    ),
    Mutant(
        "a gradient that is borrowed is done before the backup has made its step",
        PUSHES,
        "waiting.handed.insert(waiting.handed.end(), also.begin(), also.end());",
        "",
    ),
    Mutant(
        "who was the primary still has gradients where workers have them",
        SERVER,
        "if (is_backup_now.any()) {",
        "if (false) {",
    ),
    Mutant(
        "a backup steps with other rates than its primary",
        PUSH,
        "std::memcpy(body + bytes() - of_rates, &push.rates, of_rates);",
        "const Rates other{.lr = 1}; std::memcpy(body + bytes() - of_rates, &other, of_rates);",
    ),
    Mutant(
        "a new backup is not told the rates of steps that are not whole",
        INSTALLS,
        ".rates = gradient.it.rates},",
        ".rates = {.lr = 1}},",
    ),
)
