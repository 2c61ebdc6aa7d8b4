// MetProcesses: which processes this one has met, and handshakes of those that came first.
// Floor: transport/verbs/connection. Thread: under the transport's mutex.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "csrc/base/process_id.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/connection/wire.h"
#include "csrc/transport/verbs/device/limits.h"

namespace rdmacoll::verbs {

class MetProcesses {
 public:
  uint32_t count() const { return static_cast<uint32_t>(ids_.size()); }
  // nullopt: it is not met.
  std::optional<PeerId> find(const ProcessId& process) const {
    const auto found = ids_.find(process);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  // Ids count from 0.
  PeerId add(const ProcessId& process) {
    const PeerId id = count();
    ids_.emplace(process, id);
    return id;
  }

  // Of a process that is not met: whoever connects to it takes it. A flood of others is dropped.
  // Whether it says anything new: anybody can say again what has been signed once.
  bool keep_early_hello(const Hello& hello) {
    const auto known = early_hellos_.find(hello.from);
    if (known == early_hellos_.end() && early_hellos_.size() >= kMaxPeers) return false;
    if (known != early_hellos_.end() && known->second.signature == hello.signature) return false;
    early_hellos_.insert_or_assign(hello.from, hello);
    return true;
  }
  bool has_early_hello(const ProcessId& process) const { return early_hellos_.contains(process); }
  std::optional<Hello> take_early_hello(const ProcessId& process) {
    const auto found = early_hellos_.extract(process);
    return found.empty() ? std::nullopt : std::optional(found.mapped());
  }

 private:
  std::map<ProcessId, PeerId> ids_;
  std::map<ProcessId, Hello> early_hellos_;
};

}  // namespace rdmacoll::verbs
