// RdmaBackend: groups made of some ranks of another: split() of those that are named, shrink() of
// those that are left. Floor: torch_ext/backend.
#include <algorithm>
#include <limits>
#include <utility>

#include "torch_ext/backend/backend.h"
#include "torch_ext/backend/create.h"
#include "torch_ext/base/interrupt.h"
#include "torch_ext/join/process.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

constexpr int kShrinkAbort = 1;  // torch.distributed.distributed_c10d.SHRINK_ABORT

int as_rank(int64_t rank) {
  const bool fits = rank >= 0 && rank <= std::numeric_limits<int>::max();
  return fits ? static_cast<int>(rank) : -1;  // which no group has
}

}  // namespace

// Only the members of the new group take part; torch passes ranks of this one.
c10::intrusive_ptr<c10d::Backend> RdmaBackend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
  if (mine == ranks.end()) return nullptr;
  const auto* ours = dynamic_cast<const Options*>(options.get());
  auto of_group = c10::make_intrusive<Options>(options->timeout, ours ? ours->algorithm : "");
  of_group->group_name = options->group_name;
  of_group->group_desc = options->group_desc;
  for (const int rank : ranks) {
    of_group->global_ranks_in_group.push_back(
        options_->global_ranks_in_group.empty()
            ? static_cast<uint64_t>(rank)
            : options_->global_ranks_in_group.at(static_cast<size_t>(rank)));
  }
  return create_backend(store, static_cast<int>(mine - ranks.begin()),
                        static_cast<int>(ranks.size()), std::move(of_group), Agent());
}

c10::intrusive_ptr<c10d::Backend> RdmaBackend::shrink(
    const std::vector<int64_t>& ranks_to_exclude, int shrink_flags,
    const c10::intrusive_ptr<c10d::Backend::Options>& options) {
  const auto* ours = dynamic_cast<const Options*>(options.get());
  if (options && !ours) {
    Check("shrink_group")
        .fail("pg_options are of backend '" + options->backend + "'; give rdmacoll.Options");
  }
  if (ours && ours->algorithm != "" && ours->algorithm != options_->algorithm) {
    Check("shrink_group")
        .fail("pg_options.algorithm='" + ours->algorithm + "'; a smaller group keeps the '" +
              options_->algorithm + "' of the old one");
  }
  throw_if_failed(session_->usable());
  if (shrink_flags == kShrinkAbort) abort();
  std::vector<int> excluded;
  for (const int64_t rank : ranks_to_exclude) excluded.push_back(as_rank(rank));
  const Milliseconds limit = ours ? ours->timeout : timeout();
  auto shrunk = without_gil([&](const InterruptCheck& interrupt) {
    return session_->communicator().shrink(excluded, limit.count(), interrupt);
  });
  throw_if_failed(shrunk.status(), session_->communicator());
  auto [communicator, ranks] = shrunk.take();
  auto of_group = c10::make_intrusive<Options>(limit, options_->algorithm);
  of_group->group_name = options_->group_name + ":shrunk";
  for (const int rank : ranks) {
    of_group->global_ranks_in_group.push_back(
        options_->global_ranks_in_group.at(static_cast<size_t>(rank)));
  }
  auto smaller = c10::make_intrusive<RdmaBackend>(
      Process::instance().enlist(std::move(communicator)), std::move(of_group));
  smaller->setTimeout(limit);
  return smaller;
}

}  // namespace rdmacoll::torch_ext
