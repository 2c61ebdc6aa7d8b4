// GroupFailure. Floor: engine/group. Thread: see group_failure.h.
#include "csrc/engine/group/group_failure.h"

#include "csrc/engine/failure/failure_report.h"

namespace rdmacoll {
namespace {

// How long a failure waits for what other hosts' ranks are in.
constexpr int64_t kReportNs = 250'000'000;

}  // namespace

void GroupFailure::begin(Status error, std::string cause,
                         const std::vector<uint32_t>& whom_to_ask) {
  error_ = std::move(error);
  cause_ = std::move(cause);
  report_until_ns_ = clock_.now_ns() + kReportNs;
  call_logs_.begin(whom_to_ask);
}

bool GroupFailure::is_complete() {
  return call_logs_.done() || clock_.now_ns() >= report_until_ns_;
}

Status GroupFailure::with_report(uint64_t own_sequence, int64_t to_time_of_day_ns) const {
  const int64_t now_ns = clock_.now_ns() + to_time_of_day_ns;
  FailureReport report;
  for (uint32_t rank = 0; rank < members_.world(); ++rank) {
    const std::string end = rank == members_.rank() ? "" : members_.end_of(rank);
    const std::string finding = call_logs_.finding(rank, own_sequence);
    if (end.empty()) {
      report.add(rank, finding.empty() ? "has called nothing yet" : finding,
                 call_logs_.waited_ns(rank, now_ns));
    } else {
      report.add(rank, end + (finding.empty() ? "" : ", " + finding));
    }
  }
  return Status(error_.code(), error_.message() + report.text());
}

}  // namespace rdmacoll
