// Membership. Floor: torch_ext/join.
#include "torch_ext/join/membership.h"

#include <unistd.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "csrc/base/host_name.h"
#include "csrc/base/process_id.h"
#include "torch_ext/base/errors.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

const Check kCheck("reconfigure");

// Says who it is to those who read it; what makes it unique is at its end.
std::string new_handle() {
  const ProcessId id = take_or_throw(random_process_id());
  return host_name() + "/" + std::to_string(::getpid()) + "/" + hex(id);
}

std::vector<std::string> in_order(const Membership::Handles& handles) {
  if (const auto* given = std::get_if<std::vector<std::string>>(&handles)) return *given;
  const auto& set = std::get<std::unordered_set<std::string>>(handles);
  std::vector<std::string> sorted(set.begin(), set.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

Membership::Membership(c10::intrusive_ptr<c10d::Store> store, std::string agent_address)
    : store_(std::move(store)), agent_address_(std::move(agent_address)), handle_(new_handle()) {}

Membership::Place Membership::take_place(int64_t uuid, const Handles& handles) {
  const std::vector<std::string> ranks = in_order(handles);
  const auto mine = std::count(ranks.begin(), ranks.end(), handle_);
  if (mine != 1) {
    kCheck.fail("handles name this process, '" + handle_ + "', " + std::to_string(mine) +
                " times; give each rank's get_reconfigure_handle() once");
  }
  if (!used_.insert(uuid).second) {
    kCheck.fail("uuid=" + std::to_string(uuid) +
                " was used before; give a new number, the same on all ranks");
  }
  const auto rank = std::find(ranks.begin(), ranks.end(), handle_) - ranks.begin();
  // Numbers may be equal in groups without a rank in common.
  const std::string prefix = "reconfigure/" + std::to_string(uuid) + "/" + ranks.front();
  return {static_cast<int>(rank), static_cast<int>(ranks.size()),
          c10::make_intrusive<c10d::PrefixStore>(prefix, store_)};
}

}  // namespace rdmacoll::torch_ext
