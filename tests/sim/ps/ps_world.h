// PsWorld: servers and workers of a job, on connections and by a clock that a seed drives: what
// comes when, who runs when, and who is lost. Floor: tests. Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/client/client.h"
#include "csrc/ps/server/server.h"
#include "tests/sim/ps/fiber.h"
#include "tests/sim/ps/sim_connection.h"
#include "tests/unit/ps/heap_memory.h"
#include "tests/unit/ps/shard_reader.h"

namespace rdmacoll::ps {

class SimClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_; }
  void advance(int64_t ns) { now_ns_ += ns; }

 private:
  int64_t now_ns_ = 1'000'000'000;
};

class PsWorld {
 public:
  static constexpr uint64_t kLentElements = 128;
  struct Plan {
    uint32_t servers = 3;
    uint32_t workers = 2;
    uint32_t replicas = 2;
    uint64_t most_tick_ns = 4'000'000;   // the less, the more happens within a lease
    uint64_t memory_bytes = UINT64_MAX;  // of each server
  };
  PsWorld(const Plan& plan, uint64_t seed);
  ~PsWorld();

  uint64_t draw(uint64_t below) { return random_() % below; }
  const Clock& clock() const { return clock_; }
  // What the worker of a number does; it runs until it returns.
  void add_worker(std::function<void(Client&, uint32_t worker)> body);
  // Until all workers have returned, or so many steps are done; whether they have.
  bool run(uint64_t most_steps);
  // Something happens, whatever a seed draws.
  void step();

  // The server ends: of what it has sent some comes, and all others hear of it some time.
  void kill(ServerId server);
  // The server runs, and hears of some workers alone: neither of the map nor of other servers.
  void cut_off(ServerId server);
  // These two servers run, and do not hear of each other any more.
  void cut_link(ServerId one, ServerId other);
  // The server does nothing for a while, after which the others give it up.
  void stop(ServerId server);
  void go_on(ServerId server);
  // One that has ended runs again, with nothing of what it had.
  void restart(ServerId server);
  // One more server, which gets its share of the buckets.
  ServerId join();
  // The server is told to let the backups of some of its buckets, one of so many, be their
  // primaries.
  void hand_over(ServerId server, uint64_t one_of);
  // Whether all buckets have a backup.
  bool is_whole() const;
  bool is_alive(ServerId server) const { return hosts_[server].server != nullptr; }
  const BucketMap& map() const { return map_; }
  uint64_t steps() const { return steps_; }
  // A number that no table has had, of one whose first shard is in the bucket.
  uint32_t new_table(uint32_t bucket) {
    while (bucket_of_shard(++tables_, 0) != bucket) {
    }
    return tables_;
  }
  // The table is no more, which servers hear of some time.
  void drop(uint32_t table) { dropped_.push_back(table); }
  const std::vector<uint32_t>& dropped() const { return dropped_; }
  // Memory that this worker lends to servers.
  std::vector<float>& lent(const Client& client);
  // Whether no server or link was ever lost, and nothing handed over.
  bool is_undisturbed() const { return is_undisturbed_; }
  // How many reads of servers' memory have ended well.
  uint64_t reads() const { return reads_ended_; }
  // How many extents of servers' memory workers have looked into for rows.
  uint64_t mapped() const { return mapped_; }

 private:
  struct Host {
    std::shared_ptr<HeapMemory> memory{};
    std::unique_ptr<Server> server{};
    bool is_cut_off = false;
    bool is_stopped = false;
    size_t dropped = 0;  // tables that it has heard of
    // The map that it has read of the Store, and when.
    std::optional<std::pair<BucketMap, int64_t>> read{};
    std::optional<std::pair<uint64_t, BucketMap>> wish{};  // of which version it is the next
  };
  struct Wire {
    SimLink link{};
    std::optional<ServerId> from{};  // nullopt: a worker
    ServerId to = kNoServer;
    bool near_fails = false;
    bool far_fails = false;
  };
  class Worker;
  void start(ServerId server);
  void connect_servers(ServerId from, ServerId to);
  Wire& connect(std::optional<ServerId> from, ServerId to);
  void lose(Wire& connection, bool near_is_lost, bool far_is_lost);
  void turn_server();
  void turn_control();
  void turn_link();
  void turn_read();

  const Plan plan_;
  std::mt19937_64 random_;
  SimClock clock_;
  BucketMap map_;  // the Store's
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<Wire>> links_;
  std::vector<std::unique_ptr<Worker>> workers_;
  // Memory that is read stays there for as long, as that of a process that has ended does inside a
  // host.
  struct UnderWay {
    std::shared_ptr<HeapMemory> memory;
    std::shared_ptr<ShardReader> reader;
    bool is_slow = false;
    int64_t until_ns = 0;
  };
  std::vector<UnderWay> reads_;
  uint64_t reads_ended_ = 0;
  uint64_t mapped_ = 0;
  uint64_t steps_ = 0;
  uint32_t tables_ = 100;
  std::vector<uint32_t> dropped_;
  bool is_undisturbed_ = true;
  bool has_lost_ = false;  // a server or a link
  bool is_over_ = false;   // who waits is interrupted
};

}  // namespace rdmacoll::ps
