// ClientHost: a worker in its process: its connections to the servers are rings.
// Floor: ps/client. Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/ps/client/client.h"
#include "csrc/ps/client/loans.h"
#include "csrc/ps/wire/ring_connection.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

// What is known of the job's servers, wherever that is written.
class Directory {
 public:
  struct Entry {
    std::string address;
    uint64_t start = 0;  // counts how often the server was started
  };
  virtual ~Directory() = default;
  virtual Result<BucketMap> map() = 0;
  virtual Result<Entry> server(ServerId server) = 0;
};

class ClientHost final : public Surroundings {
 public:
  // Meets the servers that have buckets. own_address: this process's. The remote memory outlives
  // it.
  static Result<std::unique_ptr<ClientHost>> make(Remote& remote, std::string own_address,
                                                  std::unique_ptr<Directory> directory,
                                                  int64_t timeout_ms,
                                                  const InterruptCheck& interrupt);
  // Tells the servers that it leaves.
  ~ClientHost() override;

  Client& client() { return *client_; }
  // Memory of this process that servers of its host read themselves, once they know of it: what
  // lies there is not copied when it is pushed.
  Result<LoanPtr> lend(uint64_t bytes, const Limit& limit);
  Limit limit(int64_t timeout_ms, const InterruptCheck& interrupt) const {
    return {Deadline::after_ms(clock_, timeout_ms), interrupt};
  }

  const Clock& clock() const override { return clock_; }
  Status wait(int64_t most_ms, const InterruptCheck& interrupt) override;
  Result<BucketMap> newest_map() override { return directory_->map(); }
  Result<std::shared_ptr<Connection>> reach(ServerId server, const Limit& limit) override;
  bool can_read(ServerId server) const override;
  std::shared_ptr<const ShardRead> read(const ShardRange& range, const Limit& limit) override;
  Mapped mapped(ServerId server, uint32_t extent, const Limit& limit) override;
  std::optional<LentPlace> lent(ServerId server, std::span<const std::byte> bytes) override {
    return loans_.find(server, bytes);
  }
  std::optional<std::shared_ptr<float>> stage(ServerId primary, ServerId backup,
                                              uint64_t bytes) override;
  void end_loans(ServerId server) override { loans_.forget(server); }

 private:
  ClientHost(Remote& remote, uint64_t number, std::string own_address,
             std::unique_ptr<Directory> directory)
      : remote_(remote),
        number_(number),
        own_address_(std::move(own_address)),
        directory_(std::move(directory)),
        loans_(remote, number, own_address_) {}
  class Read;
  struct Known {
    std::shared_ptr<RingConnection> connection;
    std::string address;
    uint64_t start = 0;
    std::map<uint32_t, OpenedPtr> extents{};  // that are open
    int64_t call_again_ns = 0;                // not before, if it is lost
  };
  void close(Known& known);
  std::map<ServerId, std::string> near_servers() const;
  void lend(const Loan& loan, const Limit& limit);
  Status lend_stage(const Limit& limit);
  // Under the lock, or when nobody else is here any more.
  std::vector<std::shared_ptr<const Read>> held_reads() const;
  // nullptr: it cannot be opened now.
  OpenedPtr extent_of(ServerId server, uint32_t extent, const Limit& limit);
  Result<std::shared_ptr<RingConnection>> call(ServerId server, const Directory::Entry& entry,
                                               int64_t timeout_ms, const InterruptCheck& interrupt);

  Remote& remote_;
  const uint64_t number_;  // this worker's
  const std::string own_address_;
  const std::unique_ptr<Directory> directory_;
  const SteadyClock clock_;
  Loans loans_;
  mutable std::mutex mutex_;  // what follows
  std::map<ServerId, Known> servers_;
  std::vector<std::weak_ptr<const Read>> reads_;  // those that the client still looks at
  std::unique_ptr<Client> client_;
};

}  // namespace rdmacoll::ps
