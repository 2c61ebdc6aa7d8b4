// Group set-up. Floor: engine/connect. Thread: the one that makes the group.
#include "csrc/engine/connect/group_setup.h"

#include <algorithm>
#include <set>
#include <utility>

#include "csrc/base/limits.h"
#include "csrc/engine/connect/agreement.h"
#include "csrc/engine/work/call.h"

namespace rdmacoll {
namespace {

Status with_rank(const Status& status, uint32_t rank) {
  return Status(status.code(), "cannot reach " + rank_name(rank) + ": " + status.message());
}

}  // namespace

std::vector<uint32_t> first_to_meet(uint32_t rank, uint32_t world) {
  std::set<uint32_t> whom;
  for (uint32_t distance = 1; distance < world; distance *= 2) {
    whom.insert((rank + distance) % world);
    whom.insert((rank + world - distance) % world);
  }
  return {whom.begin(), whom.end()};
}

Result<GroupSetup> GroupSetup::begin(Transports& transports, Linker& linker, const Clock& clock,
                                     const Config& config, Layout layout, uint32_t rank,
                                     uint32_t world) {
  auto rooms = Rooms::make(transports, layout);
  if (!rooms.ok()) return rooms.status();
  const Region block = rooms.value().block();
  GroupRecord mine{.agreement = agreement_hash(config),
                   .rank = rank,
                   .world = world,
                   .address = transports.local_address(),
                   .key = transports.region_key(block.id),
                   .region = block.id,
                   .token = linker.new_token()};
  GroupSetup setup(transports, linker, clock, std::move(layout), block, std::move(mine));
  linker.add(setup.mine_.token, rooms.take(), *setup.links_, config.connect_timeout_ms);
  return setup;
}

GroupSetup::GroupSetup(Transports& transports, Linker& linker, const Clock& clock, Layout layout,
                       Region block, GroupRecord mine)
    : transports_(transports),
      linker_(linker),
      clock_(clock),
      mine_(std::move(mine)),
      links_(std::make_unique<PeerLinks>(std::move(layout), mine_.rank, mine_.world, block)) {}

Status GroupSetup::check(const GroupRecord& theirs, uint32_t rank) const {
  if (theirs.rank != rank || theirs.world != mine_.world) {
    return Status(StatusCode::Mismatch,
                  rank_name(rank) + " says that it is rank " + std::to_string(theirs.rank) +
                      " of " + std::to_string(theirs.world) + ", this rank is of a group of " +
                      std::to_string(mine_.world) + "; all ranks must name the same members");
  }
  if (theirs.agreement != mine_.agreement) {
    return Status(StatusCode::Mismatch,
                  rank_name(rank) +
                      " runs with another RDMACOLL_ALGO (or Options(algorithm=...)), another "
                      "table in RDMACOLL_TUNING, another RDMACOLL_DETERMINISTIC, "
                      "RDMACOLL_BLOCK_BYTES, RDMACOLL_TRANSPORT or RDMACOLL_IB_QPS than " +
                      rank_name(mine_.rank) + "; set them alike on all ranks");
  }
  return Status();
}

Status GroupSetup::meet(const std::vector<std::string>& records,
                        const std::vector<uint32_t>& whom) {
  if (records.size() != mine_.world) {
    return Status(StatusCode::Mismatch, "the rendezvous gave " + std::to_string(records.size()) +
                                            " records for " + std::to_string(mine_.world) +
                                            " ranks");
  }
  std::vector<std::string> islands;
  for (uint32_t peer = 0; peer < mine_.world; ++peer) {
    auto record = GroupRecord::decode(records[peer]);
    if (!record.ok()) return with_rank(record.status(), peer);
    RDMACOLL_RETURN_IF_ERROR(check(record.value(), peer));
    // Before anybody is met: who finds it later may find first that others have given up.
    const Status required = transports_.check_required(record.value().address);
    if (!required.ok()) return with_rank(required, peer);
    islands.push_back(Transports::island_of(record.value().address));
    ranks_here_ += transports_.is_here(record.value().address);
  }
  // An equivalence, whatever the links turn out to be: two ranks share an island if both have said
  // the same.
  islands_ = Islands::by_key(islands);
  if (islands_->largest() > kMaxIsland) {
    return Status(StatusCode::Unsupported,
                  std::to_string(islands_->largest()) +
                      " ranks of the group say that they are on one host, where it may have " +
                      std::to_string(kMaxIsland) +
                      "; see whether RDMACOLL_HOST_ID is the same on several hosts");
  }
  linker_.set_cards(mine_.token, Cards(records, *islands_), *islands_);
  whom_ = whom;
  for (const uint32_t peer : whom_) links_->want(peer);
  return Status();
}

Result<bool> GroupSetup::look() const {
  bool all = true;
  for (const uint32_t peer : whom_) {
    if (const Status failure = links_->failure_of(peer); !failure.ok()) {
      return with_rank(failure, peer);
    }
    all &= links_->at(peer) != nullptr;
  }
  return all;
}

Status GroupSetup::timed_out() const {
  for (const uint32_t peer : whom_) {
    if (links_->at(peer) != nullptr) continue;
    const Status why = linker_.waits_for(mine_.token, peer);
    if (!why.ok()) return with_rank(why, peer);
  }
  return Status(StatusCode::Timeout, "ranks of the group were not reached in time");
}

// Whoever waits takes the looks itself: no thread need be woken for it.
Result<NewGroup> GroupSetup::finish(Deadline deadline) {
  for (LinkerTurns turns(linker_, LinkerTurns::kMost);; turns.take()) {
    auto all = look();
    if (!all.ok()) return all.status();
    if (all.value()) break;
    if (deadline.passed(clock_)) return timed_out();
  }
  return NewGroup{std::move(links_), std::move(*islands_), mine_.token, ranks_here_};
}

void GroupSetup::give_up() { linker_.remove(mine_.token, Release::Withdraw); }

Result<NewGroup> set_up_group(Transports& transports, Linker& linker, const Clock& clock,
                              const Config& config, uint32_t rank, uint32_t world,
                              Bootstrap& bootstrap, int64_t timeout_ms) {
  auto begun = GroupSetup::begin(transports, linker, clock, config,
                                 Layout::within(world, config.block_bytes), rank, world);
  if (!begun.ok()) {
    decline_group(bootstrap, begun.status());
    return begun.status();
  }
  GroupSetup& setup = begun.value();
  auto records = bootstrap.all_gather(setup.record(), Deadline::after_ms(clock, timeout_ms));
  const Deadline deadline =
      Deadline::after_ms(clock, std::min(timeout_ms, config.connect_timeout_ms));
  const Status met =
      records.ok() ? setup.meet(records.value(), first_to_meet(rank, world)) : records.status();
  if (!met.ok()) {
    setup.give_up();
    return met;
  }
  auto group = setup.finish(deadline);
  if (!group.ok()) setup.give_up();
  return group;
}

void decline_group(Bootstrap& bootstrap, const Status& why) {
  bootstrap.decline(decline_record(why.message()));
}

}  // namespace rdmacoll
