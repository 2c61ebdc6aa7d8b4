// NearJob: a worker and its servers in one thread. Floor: tests. Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "csrc/ps/client/client.h"
#include "csrc/ps/server/server.h"
#include "tests/unit/ps/heap_memory.h"
#include "tests/unit/ps/near_connections.h"
#include "tests/unit/ps/shard_reader.h"

namespace rdmacoll::ps {

inline constexpr int64_t kSoonMs = 20'000;

class NearJob final : public Surroundings {
 public:
  // limit_bytes: of the memory of all servers together.
  explicit NearJob(uint32_t servers, uint32_t replicas = 1, uint64_t limit_bytes = UINT64_MAX)
      : memory_(limit_bytes), map_(BucketMap::spread(servers, replicas)) {
    client_ = std::make_unique<Client>(1, map_, *this);
    for (uint32_t i = 0; i < servers; ++i) {
      auto [ours, theirs] = near_connections();
      client_->add_server(static_cast<ServerId>(i), ours);
      ours_.push_back(ours);
      servers_.push_back(
          std::make_unique<Server>(static_cast<ServerId>(i), replicas, map_, memory_, clock_));
      servers_.back()->add(theirs);
    }
    for (uint32_t i = 0; i < servers; ++i) {
      for (uint32_t j = 0; j < servers; ++j) {
        if (i == j) continue;
        auto [from, to] = near_connections();
        servers_[i]->add_backup(static_cast<ServerId>(j), from);
        servers_[j]->add(to, static_cast<ServerId>(i));
        between_.push_back({{i, j}, {from, to}});
      }
    }
  }

  const Clock& clock() const override { return clock_; }
  Status wait(int64_t, const InterruptCheck&) override {
    for (const auto& server : servers_) {
      if (server == nullptr) continue;
      server->adopt(map_, clock_.now_ns());
      server->turn();
      if (const auto wish = server->wish()) map_ = *wish;
    }
    return Status();
  }
  Result<BucketMap> newest_map() override { return map_; }
  Result<std::shared_ptr<Connection>> reach(ServerId, const Limit&) override {
    return Status(StatusCode::PeerFailed, "it has ended");
  }

  bool can_read(ServerId) const override { return true; }
  // At once.
  std::shared_ptr<const ShardRead> read(const ShardRange& range, const Limit&) override {
    ++reads_;
    const std::byte* const shard = memory_.at(range.place);
    if (shard == nullptr) return nullptr;
    ShardReader reader(shard, range);
    while (!reader.outcome()) reader.go_on();
    return std::make_shared<const ShardReader>(reader);
  }
  uint64_t reads() const { return reads_; }
  Mapped mapped(ServerId, uint32_t extent, const Limit&) override {
    return {memory_.extent(extent)};
  }
  // The servers of these numbers read these bytes, of which others hear nothing.
  void lend(std::span<const float> values, const std::vector<ServerId>& servers) {
    const auto bytes = std::as_bytes(values);
    loans_.push_back({bytes, {servers.begin(), servers.end()}});
    const LoanId id{1, static_cast<uint32_t>(loans_.size())};
    for (const ServerId server : servers) {
      servers_[server]->lent().add(id, [bytes] { return Mapped{bytes}; });
    }
  }
  // The worker knows nothing of it.
  void take_back(uint32_t loan, ServerId server) { servers_[server]->lent().end({1, loan}); }
  std::optional<LentPlace> lent(ServerId server, std::span<const std::byte> bytes) override {
    for (uint32_t i = 0; i < loans_.size(); ++i) {
      const auto& all = loans_[i].bytes;
      if (bytes.data() < all.data() || bytes.data() >= all.data() + all.size()) continue;
      if (!loans_[i].servers.contains(server)) return std::nullopt;
      return LentPlace{i + 1, static_cast<uint64_t>(bytes.data() - all.data())};
    }
    return std::nullopt;
  }
  std::optional<std::shared_ptr<float>> stage(ServerId primary, ServerId backup,
                                              uint64_t) override {
    if (staged_.empty() || !staged_for_.contains(primary) || !staged_for_.contains(backup)) {
      return std::nullopt;
    }
    const auto is_free = [](const auto& room) { return room.use_count() == 1; };
    const auto free = std::ranges::find_if(staged_, is_free);
    return free == staged_.end() ? nullptr : *free;
  }
  // Room for so many shards, which all servers read.
  void lend_stages(uint32_t count) {
    stages_.resize(count * kShardElements);
    std::vector<ServerId> all(servers_.size());
    std::iota(all.begin(), all.end(), 0);
    lend(stages_, all);
    staged_for_.insert(all.begin(), all.end());
    for (uint32_t i = 0; i < count; ++i) {
      staged_.emplace_back(std::make_shared<int>(), &stages_[i * kShardElements]);
    }
  }
  uint64_t stages_held() const {
    return std::ranges::count_if(staged_, [](const auto& room) { return room.use_count() > 1; });
  }
  void end_loans(ServerId server) override {
    staged_for_.erase(server);
    for (Lent& one : loans_) one.servers.erase(server);
  }
  // Whether the server is lent any.
  bool lends(ServerId server) const {
    return std::ranges::any_of(loans_,
                               [&](const Lent& one) { return one.servers.contains(server); });
  }
  HeapMemory& memory() { return memory_; }
  uint64_t used_bytes() const { return memory_.used_bytes(); }
  void drop(uint32_t server, uint32_t table) { servers_[server]->drop(table); }
  // Its backup is the primary of all that it has, from some time on.
  void hand_over(uint32_t server) {
    std::vector<uint32_t> all(kBuckets);
    std::iota(all.begin(), all.end(), 0);
    servers_[server]->hand_over(all);
  }

  // These servers are on one host.
  void set_near(uint32_t one, uint32_t other) {
    for (const auto& [who, connections] : between_) {
      if (who != std::pair(one, other) && who != std::pair(other, one)) continue;
      connections.first->set_near();
      connections.second->set_near();
    }
  }
  const BucketMap& map() const { return map_; }
  void kill(uint32_t server) {
    servers_[server] = nullptr;
    ours_[server]->fail();
    for (const auto& [who, connections] : between_) {
      if (who.first != server && who.second != server) continue;
      connections.first->fail();
      connections.second->fail();
    }
  }
  // Until each bucket has a primary and a backup that run.
  void settle() {
    const Deadline deadline = Deadline::after_ms(clock_, kSoonMs);
    while (!is_whole()) {
      ASSERT_FALSE(deadline.passed(clock_)) << "buckets have no backups";
      ASSERT_TRUE(wait(0, {}).ok());
    }
  }
  Client& client() { return *client_; }
  Limit limit() const { return {Deadline::after_ms(clock_, kSoonMs), {}}; }
  void good(const BatchPtr& batch) {
    const Status status = client().wait(batch, limit());
    EXPECT_TRUE(status.ok()) << status.message();
  }
  ServerStats stats(uint32_t server) const { return servers_[server]->stats(); }

 private:
  bool runs(ServerId server) const { return server != kNoServer && servers_[server] != nullptr; }
  bool is_whole() const {
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      const BucketMap::Place& place = map_.of(bucket);
      if (!runs(place.primary) || !runs(place.backup)) return false;
    }
    return true;
  }

  struct Lent {
    std::span<const std::byte> bytes;
    std::set<ServerId> servers;
  };

  const SteadyClock clock_;
  std::vector<Lent> loans_;
  std::vector<float> stages_;
  std::vector<std::shared_ptr<float>> staged_;
  std::set<ServerId> staged_for_;
  HeapMemory memory_;
  BucketMap map_;
  uint64_t reads_ = 0;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::shared_ptr<NearConnection>> ours_;
  using Pair = std::pair<std::shared_ptr<NearConnection>, std::shared_ptr<NearConnection>>;
  std::vector<std::pair<std::pair<uint32_t, uint32_t>, Pair>> between_;
  std::unique_ptr<Client> client_;
};

inline std::vector<float> counting(uint64_t count, float from) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

}  // namespace rdmacoll::ps
