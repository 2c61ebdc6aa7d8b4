// Tries, and in each of them exchanges: a key per rank. Floor: torch_ext/join.
#include "torch_ext/join/store_bootstrap.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "csrc/base/printable.h"
#include "csrc/base/siphash.h"

namespace rdmacoll::torch_ext {
namespace {

constexpr std::chrono::milliseconds kShortestPause(1);
constexpr std::chrono::milliseconds kLongestPause(100);
constexpr size_t kMostWhyBytes = 1024;  // of another rank, in errors

// Short, as a key holds it, and of a list of thousands.
std::string digest(int size, const std::vector<uint64_t>& members) {
  return std::to_string(SipHash(SipKey{})
                            .add(static_cast<uint64_t>(size))
                            .finish(members.data(), members.size() * sizeof(members[0])));
}

}  // namespace

StoreBootstrap::StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                               const std::vector<uint64_t>& members, InterruptCheck interrupt)
    : store_(std::move(store)),
      rank_(rank),
      size_(size),
      interrupt_(std::move(interrupt)),
      prefix_("rdma/" + digest(size, members) + "/") {}

Result<std::vector<std::string>> StoreBootstrap::all_gather(const std::string& mine,
                                                            Deadline deadline) {
  try {
    const std::vector<std::string> keys = next_keys();
    const std::string& own_key = keys[static_cast<size_t>(rank_)];
    store_->set(own_key, mine);
    Status all_are_here = wait_for(keys, deadline);
    if (all_are_here.code() == StatusCode::Timeout) {
      all_are_here = Status(StatusCode::Timeout,
                            "not all ranks came to make the group: no word from " + missing(keys) +
                                "; see whether they run, and name the same members, or raise the "
                                "timeout");
    }
    if (!all_are_here.ok()) {
      give_up(own_key, all_are_here.message());
      return all_are_here;
    }
    std::vector<std::string> everyones = read(keys);
    leave(keys);
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

// The last to leave an exchange deletes its keys. A kind of store that cannot delete keeps them.
void StoreBootstrap::leave(const std::vector<std::string>& keys) {
  try {
    const std::string left = keys.front() + "/left";
    if (store_->add(left, 1) != size_) return;
    for (const std::string& key : keys) store_->deleteKey(key);
    store_->deleteKey(left);
  } catch (const std::exception&) {
    // This rank has read all keys. If the store is gone, the next exchange fails with that.
  }
}

void StoreBootstrap::decline(const std::string& mine) {
  try {
    const std::vector<std::string> keys = next_keys();
    store_->set(keys[static_cast<size_t>(rank_)], mine);
    leave(keys);
  } catch (const std::exception&) {
    // This rank has an error to raise already; of a store that is gone the others learn themselves.
  }
}

std::vector<std::string> StoreBootstrap::next_keys() {
  if (try_ == 0) try_ = take_place();
  const std::string exchange =
      prefix_ + std::to_string(try_) + "/" + std::to_string(++exchanges_) + "/";
  std::vector<std::string> keys;
  for (int rank = 0; rank < size_; ++rank) keys.push_back(exchange + std::to_string(rank));
  return keys;
}

int64_t StoreBootstrap::take_place() {
  while (true) {
    const int64_t come = store_->add(prefix_ + "come", 1);
    const int64_t number = (come - 1) / size_ + 1;
    if (number > std::stoll(last_given_up())) return number;
  }
}

std::string StoreBootstrap::last_given_up() {
  const std::string key = prefix_ + "given_up";
  return store_->check({key}) ? store_->get_to_str(key) : "0";
}

void StoreBootstrap::give_up(const std::string& own_key, const std::string& why) {
  try {
    if (std::stoll(last_given_up()) < try_) {
      store_->set(prefix_ + "given_up", std::to_string(try_) + " " + why);
    }
    store_->deleteKey(own_key);
  } catch (const std::exception&) {
    // As in decline().
  }
}

Status StoreBootstrap::try_goes_on() {
  const std::string given_up = last_given_up();
  if (std::stoll(given_up) < try_) return Status();
  return Status(StatusCode::PeerFailed,
                "another rank has given up making the group: " +
                    printable(given_up.substr(given_up.find(' ') + 1), kMostWhyBytes));
}

// By looking, not by Store::wait(): that one cannot be interrupted, and warns on the terminal each
// time it is cut short. Whoever waits looks for one key alone, so that a thousand ranks do not busy
// the store; it is found by halves, and what came meanwhile is seen in few looks: over a long line
// each takes as long as the line.
Status StoreBootstrap::wait_for(std::span<const std::string> keys, Deadline deadline) {
  if (store_->check({keys.begin(), keys.end()})) return Status();
  if (keys.size() == 1) return wait_for_one(keys.front(), deadline);
  const size_t half = keys.size() / 2;
  RDMACOLL_RETURN_IF_ERROR(wait_for(keys.first(half), deadline));
  return wait_for(keys.subspan(half), deadline);
}

// Whether the try is given up is asked only once the wait has become long.
Status StoreBootstrap::wait_for_one(const std::string& key, Deadline deadline) {
  const SteadyClock clock;
  for (auto pause = kShortestPause; !store_->check({key});
       pause = std::min(2 * pause, kLongestPause)) {
    RDMACOLL_RETURN_IF_ERROR(interrupt_());
    if (pause == kLongestPause) RDMACOLL_RETURN_IF_ERROR(try_goes_on());
    if (deadline.passed(clock)) return Status(StatusCode::Timeout, "");
    std::this_thread::sleep_for(pause);
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
