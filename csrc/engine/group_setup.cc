// Group set-up. Floor: engine. Thread: the one that makes the group.
#include "csrc/engine/group_setup.h"

#include <cstring>

namespace rdmacoll {
namespace {

constexpr char kMagic[8] = {'r', 'd', 'm', 'a', 'g', 'r', 'p', '1'};
constexpr size_t kPartBytesMax = 4096;

struct FixedPart {
  char magic[sizeof(kMagic)];
  uint64_t agreement;
  uint32_t rank;
  uint32_t world;
  uint32_t region;
  uint32_t card_bytes;
  uint32_t key_bytes;
  uint32_t reserved;
};
static_assert(sizeof(FixedPart) == 40);

std::string who(uint32_t rank) { return "rank " + std::to_string(rank); }

Status check_record(const GroupRecord& mine, const GroupRecord& theirs, uint32_t rank) {
  if (theirs.rank != rank || theirs.world != mine.world) {
    return Status(StatusCode::Mismatch,
                  who(rank) + " says that it is rank " + std::to_string(theirs.rank) + " of " +
                      std::to_string(theirs.world) + ", this rank is of a group of " +
                      std::to_string(mine.world) + "; all ranks must name the same members");
  }
  if (theirs.agreement != mine.agreement) {
    return Status(StatusCode::Mismatch,
                  who(rank) + " runs with another RDMACOLL_ALGO or RDMACOLL_BLOCK_BYTES than " +
                      who(mine.rank) + "; set them alike on all ranks");
  }
  return Status();
}

Result<std::vector<GroupRecord>> exchange(const GroupRecord& mine, Bootstrap& bootstrap,
                                          Deadline deadline) {
  auto all = bootstrap.all_gather(mine.encode(), deadline);
  if (!all.ok()) return all.status();
  if (all.value().size() != mine.world) {
    return Status(StatusCode::Mismatch, "the rendezvous gave " +
                                            std::to_string(all.value().size()) + " records for " +
                                            std::to_string(mine.world) + " ranks");
  }
  std::vector<GroupRecord> records;
  for (uint32_t rank = 0; rank < mine.world; ++rank) {
    auto record = GroupRecord::decode(all.value()[rank]);
    if (!record.ok()) {
      return Status(record.status().code(), who(rank) + ": " + record.status().message());
    }
    RDMACOLL_RETURN_IF_ERROR(check_record(mine, record.value(), rank));
    records.push_back(record.take());
  }
  return records;
}

Status with_rank(const Status& status, uint32_t rank) {
  return Status(status.code(), "cannot reach " + who(rank) + ": " + status.message());
}

// Offers go out to all before any is waited for, so that the order of ranks does not matter.
Status link_up(Transport& transport, const std::vector<GroupRecord>& records, uint32_t rank,
               RegionId block, Deadline deadline, std::vector<Link>* links) {
  for (uint32_t peer = 0; peer < records.size(); ++peer) {
    if (peer == rank) continue;
    auto id = transport.connect(records[peer].card, deadline);
    if (!id.ok()) return with_rank(id.status(), peer);
    (*links)[peer].peer = id.value();
    (*links)[peer].region = records[peer].region;
    if (Status s = transport.offer_region(id.value(), block); !s.ok()) return with_rank(s, peer);
  }
  for (uint32_t peer = 0; peer < records.size(); ++peer) {
    if (peer == rank) continue;
    Link& link = (*links)[peer];
    Status s = transport.open_region(link.peer, records[peer].key, deadline);
    if (!s.ok()) return with_rank(s, peer);
    link.mapped = transport.map(link.peer, link.region);
  }
  return Status();
}

}  // namespace

std::string GroupRecord::encode() const {
  FixedPart fixed{};
  std::memcpy(fixed.magic, kMagic, sizeof(kMagic));
  fixed.agreement = agreement;
  fixed.rank = rank;
  fixed.world = world;
  fixed.region = region;
  fixed.card_bytes = static_cast<uint32_t>(card.size());
  fixed.key_bytes = static_cast<uint32_t>(key.size());
  return std::string(reinterpret_cast<const char*>(&fixed), sizeof(fixed)) + card + key;
}

Result<GroupRecord> GroupRecord::decode(const std::string& bytes) {
  FixedPart fixed;
  if (bytes.size() < sizeof(fixed)) {
    return Status(StatusCode::InvalidArgument, "its record is cut short");
  }
  std::memcpy(&fixed, bytes.data(), sizeof(fixed));
  if (std::memcmp(fixed.magic, kMagic, sizeof(kMagic)) != 0) {
    return Status(StatusCode::InvalidArgument,
                  "its record is of another version of rdmacoll; install the same on all hosts");
  }
  if (fixed.card_bytes > kPartBytesMax || fixed.key_bytes > kPartBytesMax ||
      bytes.size() != sizeof(fixed) + fixed.card_bytes + fixed.key_bytes) {
    return Status(StatusCode::InvalidArgument, "its record has sizes that do not add up");
  }
  GroupRecord record;
  record.agreement = fixed.agreement;
  record.rank = fixed.rank;
  record.world = fixed.world;
  record.region = fixed.region;
  record.card = bytes.substr(sizeof(fixed), fixed.card_bytes);
  record.key = bytes.substr(sizeof(fixed) + fixed.card_bytes);
  return record;
}

Result<std::unique_ptr<Group>> set_up_group(Transport& transport, const Clock& clock,
                                            const Config& config, uint32_t rank, uint32_t world,
                                            Bootstrap& bootstrap, Deadline deadline) {
  const Layout layout(world, config.block_bytes);
  auto block = transport.create_region(layout.total_bytes());
  if (!block.ok()) return block.status();
  const RegionId region = block.value().id;

  const GroupRecord mine{config.agreement_hash(),      rank,  world, transport.local_card(),
                         transport.region_key(region), region};
  auto records = exchange(mine, bootstrap, deadline);
  std::vector<Link> links(world);
  const Status linked = records.ok()
                            ? link_up(transport, records.value(), rank, region, deadline, &links)
                            : records.status();
  if (!linked.ok()) {
    transport.release_region(region);
    return linked;
  }
  return std::make_unique<Group>(transport, clock, rank, layout, block.value(), std::move(links));
}

}  // namespace rdmacoll
