// One exchange: a key per rank. Floor: torch_ext/join.
#include "torch_ext/join/store_bootstrap.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace rdmacoll::torch_ext {
namespace {

constexpr std::chrono::milliseconds kShortestPause(1);
constexpr std::chrono::milliseconds kLongestPause(100);

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
    std::vector<std::string> everyones = read(keys);
    forget(keys);
    return everyones;
  } catch (const std::exception& error) {
    return Status(StatusCode::System,
                  std::string("the c10d store that ranks meet in failed: ") + error.what());
  }
}

// All with one request, where the kind of store has one.
std::vector<std::string> StoreBootstrap::read(const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  if (store_->hasExtendedApi()) {
    for (const auto& value : store_->multiGet(keys))
      values.emplace_back(value.begin(), value.end());
  } else {
    for (const std::string& key : keys) values.push_back(store_->get_to_str(key));
  }
  return values;
}

// The store outlives its groups, so the last rank that has read the keys deletes them. A kind of
// store that cannot delete keeps them.
void StoreBootstrap::forget(const std::vector<std::string>& keys) {
  try {
    const std::string readers = keys.front() + "/readers";
    if (store_->add(readers, 1) != size_) return;
    for (const std::string& key : keys) store_->deleteKey(key);
    store_->deleteKey(readers);
  } catch (const std::exception&) {
    // This rank has read all keys. If the store is gone, the next exchange fails with that.
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

// By looking, not by Store::wait(): that one cannot be interrupted, and warns on the terminal each
// time it is cut short. One key a look, so that a thousand ranks do not busy the store.
Status StoreBootstrap::wait_for(const std::vector<std::string>& keys, Deadline deadline) {
  if (store_->check(keys)) return Status();
  const SteadyClock clock;
  auto pause = kShortestPause;
  for (const std::string& key : keys) {
    while (!store_->check({key})) {
      RDMACOLL_RETURN_IF_ERROR(interrupt_());
      if (deadline.passed(clock)) {
        return Status(StatusCode::Timeout, "not all ranks came to make the group: no word from " +
                                               missing(keys) +
                                               "; see whether they run, or raise the timeout");
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
  }
  return Status();
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
