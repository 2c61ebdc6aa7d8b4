// ServerConnections: what a server asks the other servers, by their numbers.
// Floor: ps/server. Thread: the server's.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/wire/calls.h"

namespace rdmacoll::ps {

class ServerConnections {
 public:
  // A new connection to a server takes the place of one before: that was to one that has ended.
  void add(ServerId server, std::shared_ptr<Connection> connection) {
    const auto before = connections_.find(server);
    if (before != connections_.end()) {
      before->second.give_up();
      connections_.erase(before);
    }
    connections_.emplace(server, Calls(std::move(connection), "server " + std::to_string(server)));
  }
  // It is as if it had ended, until there is a new connection.
  void give_up(ServerId server) {
    const auto found = connections_.find(server);
    if (found != connections_.end()) found->second.give_up();
  }
  // nullptr: there is none that can be used.
  Calls* find(ServerId server) {
    const auto found = connections_.find(server);
    return found != connections_.end() && found->second.failure().ok() ? &found->second : nullptr;
  }
  // Whether there was one, and it has failed.
  bool is_lost(ServerId server) const {
    const auto found = connections_.find(server);
    return found != connections_.end() && !found->second.failure().ok();
  }
  // Those that can be used, of other hosts if there are any: what is kept there is not lost with
  // this host.
  std::vector<ServerId> for_backups() const {
    std::vector<ServerId> near;
    std::vector<ServerId> far;
    for (const auto& [server, calls] : connections_) {
      if (calls.failure().ok()) (calls.is_near() ? near : far).push_back(server);
    }
    return far.empty() ? near : far;
  }
  bool take_answers() {
    bool had_any = false;
    for (auto& [server, calls] : connections_) had_any |= calls.take_answers();
    return had_any;
  }

 private:
  std::map<ServerId, Calls> connections_;
};

}  // namespace rdmacoll::ps
