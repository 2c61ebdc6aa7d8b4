// LentMemory: memory of workers that this server may read, so that what they push need not be sent.
// Floor: ps/server. Thread: the server's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/ps/wire/mapped.h"
#include "csrc/ps/wire/push.h"

namespace rdmacoll::ps {

// Of a worker, by its number, the loan of a number of its own.
using LoanId = std::pair<uint64_t, uint32_t>;

class LentMemory {
 public:
  // map: what there is of it; empty: it is taken back.
  void add(LoanId id, std::function<Mapped()> map) { all_[id] = std::move(map); }
  void end(LoanId id) { all_.erase(id); }

  // Finds the values of a push that are lent. Unsupported: there is no such loan, or not any more.
  Status find(Push& push) const;

 private:
  std::map<LoanId, std::function<Mapped()>> all_;
};

}  // namespace rdmacoll::ps
