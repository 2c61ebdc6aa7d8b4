// RdmaBackend: a group whose ranks are given to it, and given anew when they have changed: the
// reconfigure interface of torch 2.15. Floor: torch_ext/backend.
#include <numeric>
#include <utility>

#include "torch_ext/backend/backend.h"
#include "torch_ext/backend/create.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {

RdmaBackend::RdmaBackend(std::unique_ptr<Membership> membership, int rank, int size,
                         c10::intrusive_ptr<Options> options)
    : Backend(rank, size),
      session_(std::make_shared<Session>()),
      options_(std::move(options)),
      membership_(std::move(membership)) {}

const std::string& RdmaBackend::handle() const {
  if (!membership_) {
    Check("get_reconfigure_handle")
        .fail("the group was made without enable_reconfigure=True (init_process_group)");
  }
  return membership_->handle();
}

void RdmaBackend::renumber(int rank, int size) {
#ifdef RDMACOLL_HAVE_RECONFIGURE
  rank_ = rank;
  size_ = size;
#else
  if (rank == rank_ && size == size_) return;
  Check("reconfigure")
      .fail("this torch numbers ranks once: rank " + std::to_string(rank_) + " of " +
            std::to_string(size_) + " cannot become " + std::to_string(rank) + " of " +
            std::to_string(size) + "; torch 2.15 and newer can");
#endif
}

RdmaBackend::WorkRef RdmaBackend::join_anew(int64_t uuid, const Membership::Handles& handles,
                                            std::optional<Milliseconds> limit) {
  handle();  // or it throws
  const auto [rank, size, store] = membership_->take_place(uuid, handles);
  renumber(rank, size);
  session_->close("the group was reconfigured on rank " + std::to_string(rank), 0);
  session_ = std::make_shared<Session>();
  {
    const std::lock_guard<std::mutex> lock(options_mutex_);
    options_->global_ranks_in_group.resize(static_cast<size_t>(size));
    std::iota(options_->global_ranks_in_group.begin(), options_->global_ranks_in_group.end(), 0);
  }
  session_ = join_group(store, rank, size, *options_, {membership_->agent_address(), false}, limit);
  auto work = c10::make_intrusive<TorchWork>(session_, c10d::OpType::UNKNOWN, "rdma:reconfigure",
                                             sequence_.load(), Operands());
  work->finish_in_background();  // it has no parts
  return work;
}

}  // namespace rdmacoll::torch_ext
