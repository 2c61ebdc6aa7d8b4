// Group set-up. Floor: engine/connect. Thread: the one that makes the group.
#include "csrc/engine/connect/group_setup.h"

#include <algorithm>

#include "csrc/engine/connect/agreement.h"
#include "csrc/engine/work/call.h"

namespace rdmacoll {
namespace {

Status with_rank(const Status& status, uint32_t rank) {
  return Status(status.code(), "cannot reach " + rank_name(rank) + ": " + status.message());
}

}  // namespace

Result<GroupSetup> GroupSetup::begin(Transports& transports, const Clock& clock,
                                     const Config& config, Layout layout, uint32_t rank,
                                     uint32_t world) {
  auto block = transports.create_region(layout.total_bytes());
  if (!block.ok()) return block.status();
  const RegionId region = block.value().id;
  GroupRecord mine{agreement_hash(config),        rank,  world, transports.local_address(),
                   transports.region_key(region), region};
  return GroupSetup(transports, clock, layout, block.value(), std::move(mine));
}

GroupSetup::GroupSetup(Transports& transports, const Clock& clock, Layout layout, Region block,
                       GroupRecord mine)
    : transports_(transports),
      clock_(clock),
      layout_(layout),
      block_(block),
      mine_(std::move(mine)),
      paths_(mine_.world) {}

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

Status GroupSetup::meet(const std::vector<std::string>& records, Deadline deadline) {
  if (records.size() != mine_.world) {
    return Status(StatusCode::Mismatch, "the rendezvous gave " + std::to_string(records.size()) +
                                            " records for " + std::to_string(mine_.world) +
                                            " ranks");
  }
  for (uint32_t peer = 0; peer < mine_.world; ++peer) {
    auto record = GroupRecord::decode(records[peer]);
    if (!record.ok()) return with_rank(record.status(), peer);
    RDMACOLL_RETURN_IF_ERROR(check(record.value(), peer));
    theirs_.push_back(record.take());
  }
  // One that is not reached is no reason to leave the others waiting: each finds out for itself.
  std::vector<uint32_t> peers;
  std::vector<std::string> addresses;
  for (uint32_t peer = 0; peer < mine_.world; ++peer) {
    if (peer == mine_.rank) continue;
    peers.push_back(peer);
    addresses.push_back(theirs_[peer].address);
  }
  const std::vector<Status> statuses = transports_.connect_all(
      addresses, deadline,
      [&](size_t index, const Path& path) { return offer(peers[index], path); });
  for (size_t index = 0; index < statuses.size(); ++index) {
    if (!statuses[index].ok()) return with_rank(statuses[index], peers[index]);
  }
  return Status();
}

Status GroupSetup::offer(uint32_t peer, const Path& path) {
  paths_[peer] = path;
  RDMACOLL_RETURN_IF_ERROR(transports_.offer_region(path, block_.id));
  return transports_.offer_heap(path);
}

// An equivalence, whatever the links turn out to be: two ranks share an island if both have said
// the same.
Islands GroupSetup::islands() const {
  std::vector<std::string> keys;
  for (const GroupRecord& record : theirs_) keys.push_back(Transports::island_of(record.address));
  return Islands::by_key(keys);
}

// The plans of all ranks go by the islands, so no rank can make an exception for one pair.
Status GroupSetup::not_mapped(uint32_t peer) const {
  const Path& path = paths_[peer];
  return Status(StatusCode::Unsupported,
                rank_name(mine_.rank) + " and " + rank_name(peer) +
                    " are of one host, container and user, so all ranks count on it that they "
                    "map each other's memory; but " +
                    rank_name(peer) + " is reached over " + path.transport->info().name +
                    ", which does not map it (" + path.reason +
                    "): set RDMACOLL_HOST_ID to another value on one of the two, or "
                    "RDMACOLL_TRANSPORT to " +
                    path.transport->info().name + " on all ranks");
}

Result<NewGroup> GroupSetup::finish(Deadline deadline) {
  std::vector<Link> links(mine_.world);
  Islands islands = this->islands();
  for (uint32_t peer = 0; peer < mine_.world; ++peer) {
    if (peer == mine_.rank) continue;
    const Path& path = paths_[peer];
    const RegionId region = theirs_[peer].region;
    Result<Region> opened = transports_.open_region(path, theirs_[peer].key, deadline);
    if (!opened.ok()) return with_rank(opened.status(), peer);
    const Region& block = opened.value();
    if (block.id != region || block.bytes < layout_.total_bytes()) {
      return Status(StatusCode::InvalidArgument,
                    rank_name(peer) +
                        " names as its block a region that is not open or has fewer than " +
                        std::to_string(layout_.total_bytes()) + " bytes");
    }
    if (block.base == nullptr && islands.share(mine_.rank, peer)) return not_mapped(peer);
    auto heap = transports_.open_heap(path, deadline);
    if (!heap.ok()) return with_rank(heap.status(), peer);
    links[peer] = {path.transport, path.peer,    region,
                   block.base,     heap.value(), transports_.heap_is_mapped_by(path)};
  }
  return NewGroup{
      {mine_.rank, layout_, block_, std::move(links)}, std::move(paths_), std::move(islands)};
}

void GroupSetup::give_up() {
  transports_.release_region(block_.id, Release::Withdraw);
  // An owner that has the group keeps its block until this rank has closed it. So all blocks are
  // closed here, and those that were offered but not opened are opened for that. This comes after
  // the withdrawal: so one of two ranks always sees what the other does (docs/TRANSPORTS.md,
  // "Region ids").
  for (uint32_t peer = 0; peer < theirs_.size(); ++peer) {
    const Path& path = paths_[peer];
    if (path.transport == nullptr) continue;
    static_cast<void>(
        transports_.open_region(path, theirs_[peer].key, Deadline::after_ms(clock_, 0)));
    path.transport->close_region(path.peer, theirs_[peer].region);
  }
}

Result<NewGroup> set_up_group(Transports& transports, const Clock& clock, const Config& config,
                              uint32_t rank, uint32_t world, Bootstrap& bootstrap,
                              int64_t timeout_ms) {
  auto begun = GroupSetup::begin(transports, clock, config,
                                 Layout::within(world, config.block_bytes), rank, world);
  if (!begun.ok()) {
    decline_group(bootstrap, begun.status());
    return begun.status();
  }
  GroupSetup& setup = begun.value();
  auto records = bootstrap.all_gather(setup.record(), Deadline::after_ms(clock, timeout_ms));
  const Deadline deadline =
      Deadline::after_ms(clock, std::min(timeout_ms, config.connect_timeout_ms));
  const Status met = records.ok() ? setup.meet(records.value(), deadline) : records.status();
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
