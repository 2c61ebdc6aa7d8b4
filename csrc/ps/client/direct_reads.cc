// DirectReads. Floor: ps/client. Thread: under the client's lock.
#include "csrc/ps/client/direct_reads.h"

#include <algorithm>

namespace rdmacoll::ps {

void DirectReads::learn(uint32_t table, uint32_t shard, ServerId server, const ShardPlace& place) {
  if (place.extent != 0) known_[{table, shard}] = {server, place};
}

void DirectReads::forget(ServerId server) {
  std::erase_if(known_, [&](const auto& one) { return one.second.server == server; });
}

bool DirectReads::knows(uint32_t table, uint32_t shard, ServerId server) const {
  const auto found = known_.find({table, shard});
  return found != known_.end() && found->second.server == server;
}

bool DirectReads::begin(const Errand& errand, const TableSpec& spec, ServerId server,
                        const Limit& limit) {
  const RecordHead& head = errand.head;
  const uint64_t elements = spec.shard_elements(head.shard);
  const auto found = known_.find({head.table, head.shard});
  auto read = surroundings_.read({.server = server,
                                  .place = found->second.place,
                                  .version_bytes = elements * sizeof(float),
                                  .first_byte = head.first * sizeof(float),
                                  .into = {errand.into, head.count * sizeof(float)},
                                  .stores = errand.stores},
                                 limit);
  if (read == nullptr) {
    known_.erase(found);
    return false;
  }
  under_way_.push_back({errand, std::move(read)});
  return true;
}

std::vector<DirectReads::Ended> DirectReads::take_ended() {
  std::vector<Ended> ended;
  std::erase_if(under_way_, [&](UnderWay& one) {
    const auto outcome = one.read->outcome();
    if (outcome) ended.push_back({std::move(one.errand), *outcome});
    return outcome.has_value();
  });
  return ended;
}

}  // namespace rdmacoll::ps
