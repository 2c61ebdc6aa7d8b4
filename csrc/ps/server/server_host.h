// ServerHost: a server in its process: it hears who calls, and answers them over rings.
// Floor: ps/server. Thread: serve() one; the rest any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "csrc/ps/server/remote_shard_memory.h"
#include "csrc/ps/server/server.h"
#include "csrc/ps/wire/meeting.h"
#include "csrc/ps/wire/ring_connection.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

class ServerHost {
 public:
  // replicas: as of Server. memory_bytes: what its tables may have. dropped: tables that are no
  // more. The remote memory outlives it.
  static Result<std::unique_ptr<ServerHost>> make(Remote& remote, std::string own_address,
                                                  ServerId me, uint32_t replicas, BucketMap map,
                                                  uint64_t memory_bytes,
                                                  const std::vector<uint32_t>& dropped = {});

  // Takes the next who calls, or what a worker lends; Timeout: nobody has. Only while serve() runs:
  // that sees who calls.
  Status hear(int64_t timeout_ms, const InterruptCheck& interrupt);
  // Calls another server, for what that one is the backup of.
  Status call(ServerId server, const std::string& address, int64_t timeout_ms,
              const InterruptCheck& interrupt);
  // As of Server.
  void give_up(ServerId server);
  // As of Server.
  void arrive() {
    order([this] { server_.arrive(); });
  }
  // Answers all who have called, until stop().
  Status serve(const InterruptCheck& interrupt);
  void stop();
  ServerStats stats() const;
  // As of Server: the map that it wants, and that which is to be the newest until then.
  struct Wish {
    BucketMap known;
    BucketMap wanted;
  };
  std::optional<Wish> wish() const;
  // Until there is one, or so long.
  void wait_wish(int64_t timeout_ms);
  void adopt(const BucketMap& map, int64_t known_ns);
  // As of Server. Their memory is free when it returns Ok. Not serve()'s thread.
  Status drop(const std::vector<uint32_t>& tables, int64_t timeout_ms);
  int64_t now_ns() const { return clock_.now_ns(); }

 private:
  ServerHost(Remote& remote, MailboxPtr calls, std::string own_address, ServerId me,
             uint32_t replicas, BucketMap map, uint64_t memory_bytes)
      : remote_(remote),
        calls_(std::move(calls)),
        own_address_(std::move(own_address)),
        me_(me),
        memory_(remote, me, memory_bytes, clock_),
        server_(me, replicas, std::move(map), memory_, clock_) {}
  using RingConnections = std::vector<std::shared_ptr<RingConnection>>;
  bool take_orders();
  void add(std::shared_ptr<RingConnection> connection);
  bool has_failed() const;  // any of its connections
  void drop_failed();
  void lend(const Heard& heard);
  void drop_loans();
  void count();
  void tell();
  Status look_about(const InterruptCheck& interrupt);
  // serve() does it in its thread.
  void order(std::function<void()> what);

  struct Told {
    std::atomic<bool> is_stopped{false};
    std::atomic<bool> has_orders{false};
    std::atomic<bool> has_calls{false};  // to hear()
  };

  Remote& remote_;
  const MailboxPtr calls_;
  const std::string own_address_;
  const ServerId me_;
  const SteadyClock clock_;
  const std::shared_ptr<Told> told_ = std::make_shared<Told>();  // to serve()
  mutable std::mutex mutex_;                                     // what follows
  std::condition_variable called_;
  std::condition_variable wished_;
  std::vector<std::function<void()>> orders_;
  ServerStats stats_;
  std::optional<Wish> wish_;

  RemoteShardMemory memory_;  // serve()'s, and what follows
  Server server_;
  struct Loan {
    OpenedPtr opened;
    int64_t drop_ns = 0;  // when it is to be closed; 0: it is used
  };
  std::map<LoanId, Loan> loans_;
  // What waits looks at them, too, so they are replaced as a whole.
  std::shared_ptr<const RingConnections> connections_ = std::make_shared<RingConnections>();
  int64_t look_again_ns_ = 0;
  int64_t count_again_ns_ = 0;
};

}  // namespace rdmacoll::ps
