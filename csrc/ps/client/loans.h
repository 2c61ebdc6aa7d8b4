// Loans: memory of this process that servers of its host read, so that what lies there need not be
// sent to them when it is pushed. Floor: ps/client. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/wire/meeting.h"
#include "csrc/ps/wire/push.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

// Zeroed; whoever holds it may write there, but for what is pushed and not done.
struct Loan {
  const RemoteMemoryPtr memory;
  const uint32_t number;  // of this worker's, from 1 on
};
using LoanPtr = std::shared_ptr<const Loan>;

class Loans {
 public:
  // worker: its number; own_address: this process's. The remote memory outlives it.
  Loans(Remote& remote, uint64_t worker, std::string own_address)
      : remote_(remote), worker_(worker), own_address_(std::move(own_address)) {}
  ~Loans();
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  Result<LoanPtr> make(uint64_t bytes);
  // Lends all that there is to a server of this host, which has it some time later, if it can read
  // it. What it was lent before, it has not any more.
  void lend_all(ServerId server, const std::string& address, const Meeting& meeting);
  void lend(const Loan& loan, ServerId server, const std::string& address, const Meeting& meeting);
  void forget(ServerId server);
  // Room for a copy of a shard, of a loan that is made for that by make_stage(), if both servers
  // have it; free again when nobody holds it. nullptr: there is none now. Thread: one at a time.
  Result<LoanPtr> make_stage();
  std::optional<std::shared_ptr<float>> stage(ServerId primary, ServerId backup) const;
  std::optional<LentPlace> find(ServerId server, std::span<const std::byte> bytes) const;

 private:
  struct Made {
    std::weak_ptr<const Loan> loan;
    std::map<ServerId, WorkPtr> lent{};  // done when the server has it
  };
  std::string name_of(uint32_t number) const;
  void free_unused();

  Remote& remote_;
  const uint64_t worker_;
  const std::string own_address_;
  mutable std::mutex mutex_;      // what follows
  std::map<uint32_t, Made> all_;  // by number
  uint32_t numbers_ = 0;
  std::vector<std::shared_ptr<float>> stage_;  // who is held here alone is free
};

}  // namespace rdmacoll::ps
