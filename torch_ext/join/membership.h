// Membership: how a group that reconfigure() makes finds its ranks. Each process has a handle;
// those that are given the same handles under the same number are its ranks, and meet in the store
// that all of them have. Floor: torch_ext/join. Thread: the one that makes the group; handle() any.
#pragma once

#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <unordered_set>
#include <variant>
#include <vector>

namespace rdmacoll::torch_ext {

class Membership {
 public:
  // As torch passes them: in the order of ranks, or in none; then all sort them.
  using Handles = std::variant<std::unordered_set<std::string>, std::vector<std::string>>;

  struct Place {
    int rank;
    int size;
    c10::intrusive_ptr<c10d::Store> store;  // of this group alone
  };

  // agent_address: of the launcher's agent of this host; empty: there is none.
  Membership(c10::intrusive_ptr<c10d::Store> store, std::string agent_address);

  const std::string& handle() const { return handle_; }
  const std::string& agent_address() const { return agent_address_; }
  // Throws for handles that do not name this process once, and for a number that was used.
  Place take_place(int64_t uuid, const Handles& handles);

 private:
  const c10::intrusive_ptr<c10d::Store> store_;
  const std::string agent_address_;
  const std::string handle_;
  std::unordered_set<int64_t> used_;
};

}  // namespace rdmacoll::torch_ext
