// The table of handles. Floor: torch_ext/ops. Thread: any.
#include "torch_ext/ops/handles.h"

#include <c10/util/StringUtil.h>

#include <mutex>
#include <unordered_map>

#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

struct HandleTable {
  std::mutex mutex;
  int64_t newest = 0;
  std::unordered_map<int64_t, c10::weak_intrusive_ptr<RdmaBackend>> groups;
};

// Never destroyed: groups may outlive the end of main().
HandleTable& table() {
  static auto* const the = new HandleTable;
  return *the;
}

[[noreturn]] void fail_handle(const char* operation, int64_t handle, int64_t newest) {
  const bool existed = handle > 0 && handle <= newest;
  Check(operation).fail(
      c10::str("group=", handle,
               existed ? " is the handle of a group that was destroyed"
                       : " is not the handle of a group of this process",
               "; take one of a live group by rdmacoll.ops.handle(group), on each rank"));
}

}  // namespace

int64_t handle_of(const BackendRef& backend) {
  HandleTable& all = table();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::erase_if(all.groups, [](const auto& entry) { return entry.second.expired(); });
  for (const auto& [handle, group] : all.groups) {
    if (group._unsafe_get_target() == backend.get()) return handle;
  }
  all.groups.emplace(++all.newest, c10::weak_intrusive_ptr<RdmaBackend>(backend));
  return all.newest;
}

BackendRef group_of(const char* operation, int64_t handle) {
  HandleTable& all = table();
  int64_t newest = 0;
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.groups.find(handle);
    if (found != all.groups.end()) {
      if (BackendRef group = found->second.lock()) return group;
    }
    newest = all.newest;
  }
  fail_handle(operation, handle, newest);
}

}  // namespace rdmacoll::torch_ext
