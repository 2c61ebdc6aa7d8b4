// ServerHost: a server in its process: it hears who calls, and answers them over rings.
// Floor: ps/server. Thread: serve() one; hear() another one; the rest any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/ps/server/remote_shard_memory.h"
#include "csrc/ps/server/server.h"
#include "csrc/ps/wire/ring_line.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

class ServerHost {
 public:
  // memory_bytes: what its tables may have. The remote memory outlives it.
  static Result<std::unique_ptr<ServerHost>> make(Remote& remote, uint64_t memory_bytes);

  // Takes the next who calls; Timeout: nobody has.
  Status hear(int64_t timeout_ms, const InterruptCheck& interrupt);
  // Answers all who have called, until stop().
  Status serve(const InterruptCheck& interrupt);
  void stop();
  ServerStats stats() const;

 private:
  ServerHost(Remote& remote, uint64_t memory_bytes)
      : remote_(remote), memory_(remote, memory_bytes), server_(memory_) {}
  bool take_new();
  // What serve() waits for is looked at again.
  void wake();

  struct Told {
    std::atomic<bool> is_stopped{false};
    std::atomic<bool> has_new{false};
  };

  Remote& remote_;
  const std::shared_ptr<Told> told_ = std::make_shared<Told>();  // to serve()
  mutable std::mutex mutex_;                                     // what follows
  std::vector<std::shared_ptr<RingLine>> new_;
  ServerStats stats_;

  RemoteShardMemory memory_;  // serve()'s, and what follows
  Server server_;
  std::vector<std::shared_ptr<RingLine>> lines_;
};

}  // namespace rdmacoll::ps
