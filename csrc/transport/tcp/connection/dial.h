// Dial: reaches one process over one new connection, at any of its addresses.
// Floor: transport/tcp/connection. Thread: under the transport's mutex; nothing blocks.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "csrc/base/job_key.h"
#include "csrc/base/process_id.h"
#include "csrc/base/status.h"
#include "csrc/memory/unique_fd.h"
#include "csrc/transport/tcp/connection/address.h"
#include "csrc/transport/tcp/connection/half_open.h"
#include "csrc/transport/tcp/network/ip.h"

namespace rdmacoll::tcp {

// Who dials or accepts, and how it is woken when something comes.
struct Self {
  const Address& address;  // without endpoints
  uint8_t streams = 1;
  const JobKey& key;
  const UniqueFd& wait_set;  // epoll
};

// Tries the addresses in their order, the next one when one fails or takes long; the first that
// answers as the process wins, and the others are dropped before it hears this one's proof: it must
// not count on two. When all have failed it begins anew, a few times.
class Dial {
 public:
  Dial(const ProcessId& whom, uint8_t stream, std::vector<Endpoint> order)
      : whom_(whom), stream_(stream), order_(std::move(order)) {}

  enum class Progress { Waits, Met, Failed };
  Progress advance(const Self& self, int64_t now_ns);
  // After Met: the connection, and where it leads.
  struct Won {
    HalfOpen connection;
    Endpoint to;
  };
  Won take_won() { return {std::move(attempts_.front().connection), attempts_.front().to}; }

  // Whether the process may already count on a connection of this dial.
  bool is_counted_on() const {
    return !attempts_.empty() && attempts_.front().connection.handshake().has_proved();
  }
  // What has come of the addresses so far.
  Status failure() const;

 private:
  struct Attempt {
    HalfOpen connection;
    Endpoint to;
  };

  void begin_due(const Self& self, int64_t now_ns);
  void begin(const Endpoint& to, const Self& self);
  bool advance_attempts(const Self& self);
  void keep_only(std::list<Attempt>::iterator attempt);
  void note(const Endpoint& at, const Status& why);
  Progress end_round(int64_t now_ns);

  const ProcessId whom_;
  const uint8_t stream_;
  const std::vector<Endpoint> order_;
  std::list<Attempt> attempts_;
  size_t next_ = 0;
  int64_t next_at_ns_ = 0;
  int rounds_ = 0;        // that all addresses have failed
  bool hung_up_ = false;  // one, in this round: it was there
  Status mismatch_;       // the first, of all rounds
  std::string reasons_;   // of this round
  std::string last_reasons_;
};

}  // namespace rdmacoll::tcp
