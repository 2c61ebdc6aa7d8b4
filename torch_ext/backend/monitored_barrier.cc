// monitored_barrier: a barrier that names who does not come. Every rank reports to rank 0, which
// answers once all are there. If some stay away the group fails everywhere, with their names.
// Floor: torch_ext/backend.
#include <ATen/ops/empty.h>
#include <c10/util/StringUtil.h>

#include <algorithm>

#include "csrc/base/clock.h"
#include "torch_ext/backend/backend.h"

namespace rdmacoll::torch_ext {
namespace {

constexpr int kTag = -1;  // users' tags are not negative

}  // namespace

RdmaBackend::WorkRef RdmaBackend::send_token(int destination) {
  Operands operands;
  const ConstBuffer token = operands.input(at::empty({1}, at::kByte));
  return launch(
      {.type = c10d::OpType::SEND, .title = "rdma:monitored_barrier", .collective = false},
      std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
        return communicator.send(token, destination, kTag, options);
      });
}

RdmaBackend::WorkRef RdmaBackend::receive_token(int source) {
  Operands operands;
  const MutableBuffer token = operands.output(at::empty({1}, at::kByte));
  return launch(
      {.type = c10d::OpType::RECV, .title = "rdma:monitored_barrier", .collective = false},
      std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
        return communicator.recv(token, source, kTag, options);
      });
}

void RdmaBackend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  const Milliseconds timeout = opts.timeout == c10d::kUnsetTimeout ? this->timeout() : opts.timeout;
  if (size_ == 1) return;
  if (rank_ == 0) {
    collect_tokens(timeout, wait_all_ranks);
    for (int rank = 1; rank < size_; ++rank) send_token(rank)->wait(timeout);
    return;
  }
  try {
    send_token(0);
    receive_token(0)->wait(timeout);
  } catch (const c10::Error& error) {
    throw_status(Status(
        StatusCode::Timeout,
        c10::str("[Rank ", rank_, "]: Rank ", rank_, " successfully reached monitoredBarrier, but ",
                 "received errors while waiting for send/recv from rank 0. Please check rank 0 ",
                 "logs for faulty rank.\nOriginal error: ", error.what_without_backtrace())));
  }
}

void RdmaBackend::collect_tokens(Milliseconds timeout, bool wait_all_ranks) {
  const auto fail = [&](const std::string& what) {
    const std::string message = "[Rank 0]: " + what;
    session_->communicator().abort(message);
    throw_status(Status(StatusCode::Timeout, message));
  };
  const auto in_time = c10::str(" in ", timeout.count(), " ms");
  if (timeout <= Milliseconds::zero()) {
    fail(c10::str("Rank 0 timed out in monitoredBarrier after ", timeout.count(), " ms"));
  }
  const SteadyClock clock;
  const Deadline deadline = Deadline::after_ms(clock, timeout.count());
  std::vector<WorkRef> tokens;
  for (int rank = 1; rank < size_; ++rank) tokens.push_back(receive_token(rank));
  std::vector<int> missing;
  for (int rank = 1; rank < size_; ++rank) {
    try {
      // At least a moment: who is there by then is not missing.
      tokens[static_cast<size_t>(rank - 1)]->wait(
          Milliseconds(std::max<int64_t>(deadline.left_ms(clock), 1)));
    } catch (const c10::Error&) {
      missing.push_back(rank);
      if (!wait_all_ranks) break;
    }
  }
  if (missing.empty()) return;
  fail(c10::str(missing.size() == 1 ? "Rank " : "Ranks ", c10::Join(", ", missing),
                " failed to pass monitoredBarrier", in_time));
}

}  // namespace rdmacoll::torch_ext
