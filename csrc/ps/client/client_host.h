// ClientHost: a worker in its process: its lines to the servers are rings.
// Floor: ps/client. Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/ps/client/client.h"
#include "csrc/ps/wire/ring_line.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

class ClientHost final : public Waiter {
 public:
  struct ServerAddress {
    std::string address;
    std::string who;  // for people
  };
  // Meets all servers, by their numbers. own_address: this process's. The remote memory outlives
  // it.
  static Result<std::unique_ptr<ClientHost>> make(Remote& remote, const std::string& own_address,
                                                  const std::vector<ServerAddress>& servers,
                                                  BucketMap map, int64_t timeout_ms,
                                                  const InterruptCheck& interrupt);
  // Tells the servers that it leaves.
  ~ClientHost() override;

  Client& client() { return *client_; }
  Limit limit(int64_t timeout_ms, const InterruptCheck& interrupt) const {
    return {Deadline::after_ms(clock_, timeout_ms), interrupt};
  }
  Status wait(const Limit& limit) override;

 private:
  explicit ClientHost(Remote& remote) : remote_(remote) {}

  Remote& remote_;
  const SteadyClock clock_;
  std::vector<std::shared_ptr<RingLine>> lines_;
  std::unique_ptr<Client> client_;
};

}  // namespace rdmacoll::ps
