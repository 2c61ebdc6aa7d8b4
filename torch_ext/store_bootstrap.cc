// One exchange: a key per rank. Floor: torch_ext.
#include "torch_ext/store_bootstrap.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rdmacoll::torch_ext {
namespace {

constexpr int64_t kInterruptEveryMs = 500;

}  // namespace

StoreBootstrap::StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                               InterruptCheck interrupt)
    : store_(std::move(store)), rank_(rank), size_(size), interrupt_(std::move(interrupt)) {}

Result<std::vector<std::string>> StoreBootstrap::all_gather(const std::string& mine,
                                                            Deadline deadline) {
  try {
    const std::vector<std::string> keys = next_keys();
    store_->set(keys[static_cast<size_t>(rank_)], mine);
    RDMACOLL_RETURN_IF_ERROR(wait_for(keys, deadline));
    std::vector<std::string> everyones;
    for (const std::string& key : keys) everyones.push_back(store_->get_to_str(key));
    return everyones;
  } catch (const std::exception& error) {
    return Status(StatusCode::System,
                  std::string("the c10d store that ranks meet in failed: ") + error.what());
  }
}

void StoreBootstrap::decline(const std::string& mine) {
  try {
    store_->set(next_keys()[static_cast<size_t>(rank_)], mine);
  } catch (const std::exception&) {
    // This rank has an error to raise already; of a store that is gone the others learn themselves.
  }
}

// A store may outlive a group of the same name (destroyed and made again): every rank counts its
// exchanges, so that nobody reads an earlier one.
std::vector<std::string> StoreBootstrap::next_keys() {
  const int64_t exchange = store_->add("rdma/exchanges/" + std::to_string(rank_), 1);
  std::vector<std::string> keys;
  for (int rank = 0; rank < size_; ++rank) {
    keys.push_back("rdma/" + std::to_string(exchange) + "/" + std::to_string(rank));
  }
  return keys;
}

Status StoreBootstrap::wait_for(const std::vector<std::string>& keys, Deadline deadline) {
  const SteadyClock clock;
  for (;;) {
    const int64_t wait_ms = std::min(deadline.left_ms(clock), kInterruptEveryMs);
    try {
      store_->wait(keys, std::chrono::milliseconds(std::max<int64_t>(wait_ms, 1)));
      return Status();
    } catch (const std::exception&) {
      // Most likely it was not yet time; a store that is gone throws here.
      if (store_->check(keys)) return Status();
    }
    RDMACOLL_RETURN_IF_ERROR(interrupt_());
    if (deadline.passed(clock)) {
      return Status(StatusCode::Timeout, "not all ranks came to make the group: no word from " +
                                             missing(keys) +
                                             "; see whether they run, or raise the timeout");
    }
  }
}

std::string StoreBootstrap::missing(const std::vector<std::string>& keys) {
  std::string ranks;
  for (int rank = 0; rank < size_; ++rank) {
    if (store_->check({keys[static_cast<size_t>(rank)]})) continue;
    ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(rank);
  }
  return ranks;
}

}  // namespace rdmacoll::torch_ext
