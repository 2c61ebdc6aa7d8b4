// Connector: listens, accepts and dials, until this process and another have all the connections
// that they shall have. Of two processes the one with the smaller id dials at once; the other dials
// when it has not been called soon, because the first may not know of it, or its calls may not get
// through.
// Floor: transport/tcp/connection. Thread: under the transport's mutex; nothing blocks.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/job_key.h"
#include "csrc/base/process_id.h"
#include "csrc/base/status.h"
#include "csrc/memory/sole_fd.h"
#include "csrc/memory/unique_fd.h"
#include "csrc/transport/set_up_news.h"
#include "csrc/transport/tcp/connection/address.h"
#include "csrc/transport/tcp/connection/dial.h"
#include "csrc/transport/tcp/connection/half_open.h"
#include "csrc/transport/tcp/network/interfaces.h"
#include "csrc/transport/tcp/network/sockets.h"
#include "csrc/transport/tcp/settings/settings.h"

namespace rdmacoll::tcp {

struct Connection {
  SoleFd fd;
  FrameKeys keys;
};
using Connections = std::vector<Connection>;

class Connector {
 public:
  // key, clock and news outlive it; news hears who calls, and who has been met.
  // me: without endpoints.
  static Result<std::unique_ptr<Connector>> open(const TcpConfig& config, const JobKey& key,
                                                 const Address& me, const Clock& clock,
                                                 SetUpNews& news);

  std::vector<Endpoint> endpoints() const;
  const std::vector<Interface>& interfaces() const { return interfaces_; }

  // Wants to meet this process; serve() does the rest. Whoever has not asked for a while has given
  // that up.
  void meet(const Address& theirs);
  // Gives that up.
  void forget(const ProcessId& process);
  // Accepts, and goes on with all that is under way.
  void serve();
  // All connections with the process, once there are; only once.
  std::optional<Connections> take_met(const ProcessId& process);
  // Whether the process has called, and is not met yet.
  bool is_called_by(const ProcessId& process) const;
  // Of a process that this one wants to meet: Ok, or that it cannot be.
  Status failure_of(const ProcessId& process) const;
  // For a wait that was in vain: what is known of this process; "": nothing.
  std::string why_not(const ProcessId& process) const;
  // Until serve() may have something to do, or for so long; whether it may. Not under the mutex.
  bool wait(int64_t ms) const;
  // Readable while it may.
  int wait_fd() const { return wait_set_.get(); }

 private:
  // Accepted, and not known yet.
  struct Stranger {
    HalfOpen connection;
    int64_t since_ns;
  };
  struct Meeting {
    std::vector<std::optional<Connection>> connections;  // by stream
    std::optional<Dial> dial;
    std::optional<Address> wanted;  // whom to dial
    std::optional<Address> caller;  // who has dialled, where it is not known otherwise
    int64_t asked_at_ns = 0;
    int64_t dial_at_ns = 0;
    std::optional<Endpoint> way;  // where this process has reached it
    Status failure;

    bool is_complete() const;
  };

  Connector(const TcpConfig& config, const JobKey& key, const Address& me, const Clock& clock,
            SetUpNews& news);
  Status watch(int fd, uint32_t events);
  Status listen();
  Meeting& meeting_with(const ProcessId& process);
  void accept();
  bool has_place() const;
  void look_again_at_strangers();
  void advance_strangers();
  void take_stranger(Stranger& stranger);
  void note_caller(const ProcessId& process, const Meeting& meeting);
  void advance_dial(const ProcessId& process, Meeting& meeting);
  void begin_dial(const ProcessId& process, Meeting& meeting);
  std::vector<Endpoint> in_order(const std::vector<Endpoint>& theirs) const;

  const TcpConfig config_;
  const JobKey& key_;
  const Address me_;  // without endpoints
  const Clock& clock_;
  SetUpNews& news_;
  std::vector<Interface> interfaces_;
  std::vector<Listener> listeners_;
  UniqueFd wait_set_;              // epoll
  std::list<Stranger> strangers_;  // the oldest first
  size_t turn_ = 0;                // of the listeners
  std::map<ProcessId, Meeting> meetings_;
  std::set<ProcessId> met_;
  std::string turned_away_;  // the last stranger, and why
};

}  // namespace rdmacoll::tcp
