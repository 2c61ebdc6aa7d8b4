// What a rank keeps of ranks that it has not met, of 16,384: at most 64 bytes each where hosts have
// eight ranks, and at most 128 where all are alone. The records are as real ones, of processes that
// shm and tcp reach.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // of whose memory malloc knows

#include <gtest/gtest.h>
#include <malloc.h>

#include <random>

#include "csrc/engine/connect/group_setup.h"
#include "csrc/engine/connect/tagged_fields.h"
#include "csrc/engine/group/group.h"
#include "csrc/transport/shm/address.h"
#include "csrc/transport/tcp/connection/address.h"

namespace rdmacoll::large_world_test {
namespace {

size_t bytes_in_use() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

std::string hex_digits(std::mt19937_64& random, size_t count) {
  std::string digits;
  while (digits.size() < count) digits += "0123456789abcdef"[random() % 16];
  return digits;
}

// As `own` says it, of a process of its own on a host of its own or of the rank before it.
class Records {
 public:
  Records(GroupRecord own, uint32_t ranks_of_host)
      : record_(std::move(own)), ranks_of_host_(ranks_of_host) {}

  std::string of(uint32_t rank) {
    if (rank % ranks_of_host_ == 0) new_host();
    record_.rank = rank;
    ProcessId process;
    for (uint8_t& byte : process) byte = static_cast<uint8_t>(random_());
    const auto pid = static_cast<uint32_t>(random_() % 4'000'000);
    TaggedFields address = parse_tagged_fields(record_.address).take();
    auto shm = parse_shm_address(address.at("shm")).take();
    auto tcp = tcp::parse_address(address.at("tcp")).take();
    shm.process = tcp.process = process;
    shm.pid = tcp.pid = pid;
    shm.host = address["host id"] = host_id_;
    tcp.host = address["host name"] = host_name_;
    tcp.endpoints[0].ip = ip_;
    tcp.endpoints[0].port = static_cast<uint16_t>(random_());
    address["island"] = island_;
    address["shm"] = encode(shm);
    address["tcp"] = encode(tcp);
    GroupRecord record = record_;
    record.address = encode(address);
    TaggedFields key = parse_tagged_fields(record.key).take();
    auto shm_key = parse_region_key(key.at("shm").substr(1)).take();
    auto tcp_key = tcp::parse_region_key(key.at("tcp").substr(1)).take();
    shm_key.owner = tcp_key.owner = process;
    key["shm"] = key["shm"][0] + encode(shm_key);
    key["tcp"] = key["tcp"][0] + encode(tcp_key);
    record.key = encode(key);
    return record.encode();
  }

 private:
  void new_host() {
    host_id_ = hex_digits(random_, 36);
    island_ = hex_digits(random_, island_.empty() ? own_island().size() : island_.size());
    host_name_ = "node" + std::to_string(10'000 + random_() % 90'000);
    for (size_t i = 13; i < 16; ++i) ip_.bytes[i] = static_cast<uint8_t>(random_());
  }
  std::string own_island() const { return Transports::island_of(record_.address); }

  GroupRecord record_;
  const uint32_t ranks_of_host_;
  std::mt19937_64 random_{1};
  std::string host_id_, host_name_, island_;
  tcp::IpAddress ip_;
};

void expect_at_most(uint64_t most_bytes, uint32_t ranks_of_host) {
  const SteadyClock clock;
  Config config;
  config.settings.set("RDMACOLL_SOCKET_IFNAME", "=lo");
  auto transports = Transports::open(config, clock, nullptr, ThisProcess::make().take()).take();
  Linker linker(*transports, clock, AlarmFd::create().take());
  const Layout layout = Layout::within(kMaxWorld, config.block_bytes);
  auto setup = GroupSetup::begin(*transports, linker, clock, config, layout, 0, kMaxWorld).take();
  Records others(GroupRecord::decode(setup.record()).take(), ranks_of_host);
  std::vector<std::string> records;
  for (uint32_t rank = 0; rank < kMaxWorld; ++rank) records.push_back(others.of(rank));
  const size_t record_bytes = records[1].size();

  const size_t before = bytes_in_use();
  ASSERT_TRUE(setup.meet(records, {}).ok());
  NewGroup made = setup.finish(Deadline{0}).take();
  const Islands islands = std::move(made.islands);
  EXPECT_EQ(islands.count(), kMaxWorld / ranks_of_host);
  std::optional<Group> group(std::in_place, clock, std::move(made.links), nullptr, config);
  const size_t tables = bytes_in_use() - before;
  std::printf("%u to a host: %.1f bytes each, of records of %zu\n", ranks_of_host,
              static_cast<double>(tables) / kMaxWorld, record_bytes);
  EXPECT_LE(tables, most_bytes * kMaxWorld);
  group.reset();
  linker.remove(made.token, Release::Keep);
}

TEST(LargeWorld, OfHostsOfEightRanksOneTakesFewBytes) { expect_at_most(64, 8); }
TEST(LargeWorld, OfHostsOfOneRankOneTakesMore) { expect_at_most(128, 1); }

}  // namespace
}  // namespace rdmacoll::large_world_test

#endif
