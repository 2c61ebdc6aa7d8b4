// SetUpNews: what a transport has for whoever calls serve(), and the alarm that rings while there
// is something, or once it is time to look again. All transports of a process share that.
// Floor: transport. Thread: under the transport's mutex; get() any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/limits.h"
#include "csrc/base/process_id.h"
#include "csrc/base/status.h"
#include "csrc/memory/alarm_fd.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

// What a peer is lost by for which SetUpNews has no place.
inline Status offers_too_much(const std::string& peer) {
  return Status(StatusCode::PeerFailed,
                peer +
                    " has offered this process more than 4096 regions and notes that nobody here "
                    "has taken: it runs away, or this process has not served set-up for long");
}

class SetUpNews {
 public:
  // What one peer may have offered, and nobody taken: more than regions that it may have.
  static constexpr size_t kMostOffers = 4096;
  static_assert(kMostOffers > kMaxRegions);

  // Before all else.
  void ring_by(std::shared_ptr<AlarmFd> alarm) { alarm_ = std::move(alarm); }
  int get() const { return alarm_->get(); }

  // A process calls, or it is there now and waits for connect(). In a flood of them some are
  // dropped: an honest one calls again.
  void note_caller(const ProcessId& process, std::string address) {
    if (callers_.size() < kMaxPeers) callers_.insert_or_assign(process, std::move(address));
    set_alarm();
  }
  void note_met(const ProcessId& process) {
    if (callers_.erase(process) > 0) set_alarm();
  }
  // False: the peer has offered too much.
  bool add(RegionOffer offer) {
    if (++offers_of_[offer.peer] > kMostOffers) return false;
    offers_.push_back(std::move(offer));
    set_alarm();
    return true;
  }
  void take(SetUpReport& report) {
    std::move(offers_.begin(), offers_.end(), std::back_inserter(report.offers));
    for (auto& [process, address] : callers_) report.callers.push_back(std::move(address));
    offers_.clear();
    offers_of_.clear();
    callers_.clear();
    set_alarm();
  }
  // Then the descriptor stays readable, and wakes nobody who waits for something else.
  bool rings_for_others() const { return is_waiting() || alarm_->rings_for_others(this); }

  // Set-up is to be looked at again in so long, whether or not something comes.
  void look_again_in_ns(int64_t ns) {
    again_in_ns_ = again_in_ns_ == kNever ? ns : std::min(again_in_ns_, ns);
    set_alarm();
  }
  // It is looked at now.
  void begin_look() {
    if (again_in_ns_ == kNever) return;
    again_in_ns_ = kNever;
    set_alarm();
  }

 private:
  static constexpr int64_t kNever = AlarmFd::kNever;

  bool is_waiting() const { return !offers_.empty() || !callers_.empty(); }

  void set_alarm() {
    const int64_t rings_in_ns = is_waiting() ? 0 : again_in_ns_;
    if (rings_in_ns == set_to_ns_) return;
    set_to_ns_ = rings_in_ns;
    alarm_->ring_in_ns(this, rings_in_ns);
  }

  std::shared_ptr<AlarmFd> alarm_;
  int64_t set_to_ns_ = kNever;                // the alarm, when it was set
  int64_t again_in_ns_ = kNever;              // from the last look on
  std::map<ProcessId, std::string> callers_;  // and their addresses
  std::vector<RegionOffer> offers_;
  std::map<PeerId, size_t> offers_of_;
};

}  // namespace rdmacoll
