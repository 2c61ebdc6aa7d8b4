// GroupFailure: the error that a group is about to fail with. Before it fails, a rank reads what
// the others are in (call_log_reader.h) and puts it into the error. Nobody has to answer for that.
// Floor: engine/group. Thread: the driver.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/failure/call_log_reader.h"
#include "csrc/engine/group/members.h"

namespace rdmacoll {

class GroupFailure {
 public:
  GroupFailure(const Clock& clock, const Members& members, CallLogReader& call_logs)
      : clock_(clock), members_(members), call_logs_(call_logs) {}

  // Begins to read the call logs of these ranks. `cause` is the error in few words, for the peers'
  // status lines.
  void begin(Status error, std::string cause, const std::vector<uint32_t>& whom_to_ask);
  // Instead, where nobody is asked.
  void take_cause(std::string cause) { cause_ = std::move(cause); }
  // Whether the logs are here, or have taken too long.
  bool is_complete();
  // The error, with what every rank is in. own_sequence: the number of this rank's collective.
  Status with_report(uint64_t own_sequence, int64_t to_time_of_day_ns) const;
  // "": the failure did not begin here, or is its own cause.
  const std::string& cause() const { return cause_; }

 private:
  const Clock& clock_;
  const Members& members_;
  CallLogReader& call_logs_;
  Status error_;
  std::string cause_;
  int64_t report_until_ns_ = 0;
};

}  // namespace rdmacoll
