// DirectReads: what a worker reads in the memory of servers, which have no part in it: where their
// shards lie, as far as that is known, and what is under way.
// Floor: ps/client. Thread: under the client's lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/ps/client/errand.h"
#include "csrc/ps/client/surroundings.h"

namespace rdmacoll::ps {

class DirectReads {
 public:
  explicit DirectReads(Surroundings& surroundings) : surroundings_(surroundings) {}

  // A shard lies there.
  void learn(uint32_t table, uint32_t shard, ServerId server, const ShardPlace& place);
  // The server was started again, or there is another way to it.
  void forget(ServerId server);
  bool knows(uint32_t table, uint32_t shard, ServerId server) const;

  // Begins a pull of a range, of a server of which it is known where that lies. False: it cannot be
  // read, and is not known any more.
  bool begin(const Errand& errand, const TableSpec& spec, ServerId server, const Limit& limit);
  struct Ended {
    Errand errand;
    bool is_whole = false;  // false: the server shows nothing there now, or is lost
  };
  // Those that have ended since.
  std::vector<Ended> take_ended();

 private:
  using Shard = std::pair<uint32_t, uint32_t>;  // the table, and its shard
  struct Known {
    ServerId server = kNoServer;
    ShardPlace place{};
  };
  struct UnderWay {
    Errand errand;
    std::shared_ptr<const ShardRead> read{};
  };

  Surroundings& surroundings_;
  std::map<Shard, Known> known_;
  std::vector<UnderWay> under_way_;
};

}  // namespace rdmacoll::ps
