// Arrival: how a server that has come while the job runs gets its share of the buckets: it offers
// to be the backup of some, and when it is that, has others hand it over some of those. It looks
// again and again, as what the map says changes meanwhile. Floor: ps/server. Thread: the server's.
#pragma once

#include <cstdint>

#include "csrc/ps/server/server_connections.h"
#include "csrc/ps/server/state.h"
#include "csrc/ps/table/share.h"

namespace rdmacoll::ps {

class Arrival {
 public:
  Arrival(const State& state, ServerConnections& servers) : state_(state), servers_(servers) {}

  void begin() { is_under_way_ = true; }
  // Asks for more of it, from time to time.
  void turn();

 private:
  void ask(RecordKind kind, const BucketsOf& buckets);

  const State& state_;
  ServerConnections& servers_;
  bool is_under_way_ = false;
  int64_t look_again_ns_ = 0;
};

}  // namespace rdmacoll::ps
