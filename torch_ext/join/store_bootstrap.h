// StoreBootstrap: the ranks of a new group meet in torch's key-value store.
// Floor: torch_ext/join. Thread: the one that makes the group.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "csrc/engine/connect/bootstrap.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll::torch_ext {

// A store may outlive a group of the same name: torch counts names anew after each
// init_process_group(), and a group that could not be made may be tried again. So every try has a
// number, which its ranks find out by the order in which they come: of those with the same members,
// the first `size` are of try 1, the next of try 2. Who gives up a try says so: the others of it
// hear that at once, and who comes later leaves its remaining places empty and goes on to the next.
//
// A list of members keeps two keys in the store, however many its tries: how many ranks have come,
// and which try was the last to be given up. All else goes with the try.
class StoreBootstrap final : public Bootstrap {
 public:
  // members: what the job calls the ranks of the group, the same list on all of them.
  StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                 const std::vector<uint64_t>& members, InterruptCheck interrupt);
  Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline deadline) override;
  void decline(const std::string& mine) override;

 private:
  // The key of each rank in the next exchange of this try.
  std::vector<std::string> next_keys();
  int64_t take_place();
  std::vector<std::string> read(const std::vector<std::string>& keys);
  void leave(const std::vector<std::string>& keys);
  // Timeout: some are missing, without words.
  Status wait_for(std::span<const std::string> keys, Deadline deadline);
  Status wait_for_one(const std::string& key, Deadline deadline);
  std::string missing(const std::vector<std::string>& keys);
  // The number of the last try that was given up, and why, with a space between; "0": none was.
  std::string last_given_up();
  // Ok, or why another rank has given this try up.
  Status try_goes_on();
  void give_up(const std::string& own_key, const std::string& why);

  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_;
  const int size_;
  const InterruptCheck interrupt_;
  const std::string prefix_;  // of all keys of these members
  int64_t try_ = 0;           // 0: this rank has not come yet
  int exchanges_ = 0;         // in this try
};

}  // namespace rdmacoll::torch_ext
