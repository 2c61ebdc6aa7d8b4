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
// In an exchange all ranks append to one key, and the last to come says that all are there. So what
// it takes of a rank is as many requests for thousands of ranks as for two. Some kinds of stores
// (FileStore, which is a file) cannot append: there each rank has a key.
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
  void begin_exchange();
  int64_t take_place();

  // Of the exchange.
  std::string words_key() const { return exchange_ + "words"; }  // that all append to
  std::string come_key() const { return exchange_ + "come"; }    // how many have
  std::string all_key() const { return exchange_ + "all"; }      // all have
  std::string key_of(int rank) const { return exchange_ + std::to_string(rank); }
  std::vector<std::string> keys() const;  // of all ranks, or the three above
  void say(const std::string& mine);
  // Timeout: some are missing, without words.
  Status wait_for_all(Deadline deadline);
  Status wait_for(std::span<const std::string> keys, Deadline deadline);
  Status poll(const std::vector<std::string>& keys, Deadline deadline);
  Result<std::vector<std::string>> read();
  std::string missing();
  void leave();

  // The number of the last try that was given up, and why, with a space between; "0": none was.
  std::string last_given_up();
  // Ok, or why another rank has given this try up.
  Status try_goes_on();
  void give_up(const std::string& why);

  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_;
  const int size_;
  const InterruptCheck interrupt_;
  const std::string prefix_;  // of all keys of these members
  const bool appends_;        // the store does
  std::string exchange_;      // prefix of all keys of the exchange
  int64_t try_ = 0;           // 0: this rank has not come yet
  int exchanges_ = 0;         // in this try
};

}  // namespace rdmacoll::torch_ext
