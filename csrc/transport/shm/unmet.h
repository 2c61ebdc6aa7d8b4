// Unmet: what a process knows of those that it has not met: when it turns to them again, which of
// them have knocked, and why they have not met. Who waits for one of them is told. Floor:
// transport/shm. Thread: under the transport's mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "csrc/base/limits.h"
#include "csrc/base/process_id.h"
#include "csrc/base/status.h"

namespace rdmacoll {

class Unmet {
 public:
  // When one that is to be met is dialled; `first`: where it was not.
  int64_t& dial_at_ns(const ProcessId& process, int64_t first) {
    return dial_at_ns_.try_emplace(process, first).first->second;
  }
  void note_met(const ProcessId& process) {
    dial_at_ns_.erase(process);
    knocks_.erase(process);
  }

  // It wants to be dialled, says somebody. In a flood the oldest is forgotten: an honest one knocks
  // again.
  void note_knock(const ProcessId& process) {
    knocks_[process] = ++knocks_ever_;
    if (knocks_.size() <= kMaxPeers) return;
    knocks_.erase(
        std::min_element(knocks_.begin(), knocks_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
  bool has_knocked(const ProcessId& process) const { return knocks_.contains(process); }

  // Somebody was turned away, who may be anybody.
  void note_turned_away(const std::string& why) { turned_away_ = why; }
  // Whoever said that it was this process did not prove itself. Another process of this user may
  // have lied; but that could as well end this process.
  void refuse(const ProcessId& process, const std::string& why) {
    turned_away_ = why;
    if (process == ProcessId{} || refused_.size() >= kMaxPeers) return;
    refused_[process] = Status(StatusCode::Mismatch, why);
  }
  // The process was dialled, and hung up before the two had met.
  void note_hung_up(const ProcessId& process) { hung_up_.insert(process); }

  // Ok: it was not refused.
  Status status_of(const ProcessId& process) const {
    const auto found = refused_.find(process);
    return found == refused_.end() ? Status() : found->second;
  }
  // What may be the reason that this process did not meet that one; "": nothing is known.
  std::string why_not(const ProcessId& process) const {
    std::string text;
    if (hung_up_.contains(process)) {
      text +=
          "; it closed the connection that this process had made before the two had met: it turned "
          "this process away (another user, another version of rdmacoll), or was ending, and its "
          "own error says which";
    }
    if (!turned_away_.empty()) text += "; meanwhile this process turned one away: " + turned_away_;
    return text;
  }

 private:
  std::map<ProcessId, int64_t> dial_at_ns_;
  std::map<ProcessId, uint64_t> knocks_;  // by which one it was
  uint64_t knocks_ever_ = 0;
  std::map<ProcessId, Status> refused_;
  std::set<ProcessId> hung_up_;
  std::string turned_away_;  // the last
};

}  // namespace rdmacoll
