// NamedWork. Floor: torch_ext/order.
#include "torch_ext/order/named_work.h"

#include <utility>

#include "torch_ext/base/errors.h"
#include "torch_ext/base/interrupt.h"

namespace rdmacoll::torch_ext {

NamedWork::NamedWork(BackendRef tensors, BackendRef names, NamedRequest request, Tensors inputs,
                     Tensors outputs)
    : tensors_(std::move(tensors)),
      names_(std::move(names)),
      request_(std::move(request)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {}

void NamedWork::wait(double timeout_s) {
  Communicator& communicator = tensors_->session().communicator();
  if (!ended_->done()) {
    const int64_t timeout_ms = timeout_s < 0 ? -1 : static_cast<int64_t>(timeout_s * 1000);
    throw_if_failed(tensors_->session().usable());
    const Status stopped = without_gil([&](const InterruptCheck& interrupt) {
      const Status waited = communicator.wait(*ended_, timeout_ms, interrupt);
      return ended_->done() ? Status() : waited;
    });
    throw_if_failed(stopped);
  }
  const Status& status = ended_->status();
  if (status.ok()) return;
  // It has failed in one of the two; the other one may not know who is lost.
  const Communicator& names = names_->session().communicator();
  throw_status(status, names.lost_ranks().empty() ? communicator : names);
}

void NamedWork::end(const Status& status) {
  times_->end(!status.ok());
  for (Work::Callback& callback : ended_->finish(status)) callback(status);
}

}  // namespace rdmacoll::torch_ext
