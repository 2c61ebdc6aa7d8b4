// Tries, and in each of them exchanges. Floor: torch_ext/join.
#include "torch_ext/join/store_bootstrap.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "csrc/base/printable.h"
#include "csrc/base/siphash.h"
#include "csrc/engine/connect/appended_records.h"

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
      prefix_("rdma/" + digest(size, members) + "/"),
      appends_(store_->hasExtendedApi()) {}

Result<std::vector<std::string>> StoreBootstrap::all_gather(const std::string& mine,
                                                            Deadline deadline) {
  try {
    begin_exchange();
    say(mine);
    Status all_are_here = wait_for_all(deadline);
    if (all_are_here.code() == StatusCode::Timeout) {
      all_are_here = Status(StatusCode::Timeout,
                            "not all ranks came to make the group: no word from " + missing() +
                                "; see whether they run, and name the same members, or raise the "
                                "timeout");
    }
    if (!all_are_here.ok()) {
      give_up(all_are_here.message());
      return all_are_here;
    }
    Result<std::vector<std::string>> everyones = read();
    leave();
    return everyones;
  } catch (const std::exception& error) {
    return Status(StatusCode::System,
                  std::string("the c10d store that ranks meet in failed: ") + error.what());
  }
}

void StoreBootstrap::decline(const std::string& mine) {
  try {
    begin_exchange();
    say(mine);
    leave();
  } catch (const std::exception&) {
    // This rank has an error to raise already; of a store that is gone the others learn themselves.
  }
}

void StoreBootstrap::begin_exchange() {
  if (try_ == 0) try_ = take_place();
  exchange_ = prefix_ + std::to_string(try_) + "/" + std::to_string(++exchanges_) + "/";
}

std::vector<std::string> StoreBootstrap::keys() const {
  if (appends_) return {words_key(), come_key(), all_key()};
  std::vector<std::string> keys;
  for (int rank = 0; rank < size_; ++rank) keys.push_back(key_of(rank));
  return keys;
}

void StoreBootstrap::say(const std::string& mine) {
  if (!appends_) return store_->set(key_of(rank_), mine);
  const std::string record = appended_record(static_cast<uint32_t>(rank_), mine);
  store_->append(words_key(), {record.begin(), record.end()});
  if (store_->add(come_key(), 1) == size_) store_->set(all_key(), "1");
}

// What ranks have appended may be gone, with a try that is given up: get() would wait for it.
Status StoreBootstrap::wait_for_all(Deadline deadline) {
  return appends_ ? poll({all_key(), words_key()}, deadline) : wait_for(keys(), deadline);
}

Result<std::vector<std::string>> StoreBootstrap::read() {
  std::vector<std::string> everyones;
  if (!appends_) {
    for (const std::string& key : keys()) everyones.push_back(store_->get_to_str(key));
    return everyones;
  }
  auto appended = parse_appended(store_->get_to_str(words_key()), static_cast<uint32_t>(size_));
  if (!appended.ok()) return appended.status();
  for (auto& words : appended.value()) {
    if (!words) {
      return Status(StatusCode::System,
                    "rank " + std::to_string(everyones.size()) +
                        " came to make the group, but what it said is gone from the c10d store; "
                        "see who else deletes keys there");
    }
    everyones.push_back(std::move(*words));
  }
  return everyones;
}

std::string StoreBootstrap::missing() {
  std::vector<bool> here(static_cast<size_t>(size_));
  if (!appends_) {
    for (int rank = 0; rank < size_; ++rank) here[rank] = store_->check({key_of(rank)});
  } else if (store_->check({words_key()})) {
    auto appended = parse_appended(store_->get_to_str(words_key()), static_cast<uint32_t>(size_));
    for (size_t i = 0; appended.ok() && i < here.size(); ++i)
      here[i] = appended.value()[i].has_value();
  }
  std::string ranks;
  for (int rank = 0; rank < size_; ++rank) {
    if (!here[rank]) ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(rank);
  }
  return ranks;
}

// The last to leave an exchange deletes its keys. A kind of store that cannot delete keeps them.
void StoreBootstrap::leave() {
  try {
    const std::string left = exchange_ + "left";
    if (store_->add(left, 1) != size_) return;
    for (const std::string& key : keys()) store_->deleteKey(key);
    store_->deleteKey(left);
  } catch (const std::exception&) {
    // This rank has read all keys. If the store is gone, the next exchange fails with that.
  }
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

// Nobody reads what was said in a try that is given up, but where all had come: then it is read,
// and the others hear of it in the next exchange.
void StoreBootstrap::give_up(const std::string& why) {
  try {
    if (std::stoll(last_given_up()) < try_) {
      store_->set(prefix_ + "given_up", std::to_string(try_) + " " + why);
    }
    if (!appends_) {
      store_->deleteKey(key_of(rank_));
    } else if (store_->check({all_key()})) {
      leave();
    } else {
      for (const std::string& key : keys()) store_->deleteKey(key);
    }
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

// Whoever waits looks for one key alone, so that a thousand ranks do not busy the store; it is
// found by halves, and what came meanwhile is seen in few looks.
Status StoreBootstrap::wait_for(std::span<const std::string> keys, Deadline deadline) {
  if (keys.size() == 1) return poll({keys.front()}, deadline);
  if (store_->check({keys.begin(), keys.end()})) return Status();
  const size_t half = keys.size() / 2;
  RDMACOLL_RETURN_IF_ERROR(wait_for(keys.first(half), deadline));
  return wait_for(keys.subspan(half), deadline);
}

// By looking, not by Store::wait(): that one cannot be interrupted, and warns on the terminal each
// time it is cut short. Whether the try is given up is asked only once the wait has become long.
Status StoreBootstrap::poll(const std::vector<std::string>& keys, Deadline deadline) {
  const SteadyClock clock;
  for (auto pause = kShortestPause; !store_->check(keys);
       pause = std::min(2 * pause, kLongestPause)) {
    RDMACOLL_RETURN_IF_ERROR(interrupt_());
    if (pause == kLongestPause) RDMACOLL_RETURN_IF_ERROR(try_goes_on());
    if (deadline.passed(clock)) return Status(StatusCode::Timeout, "");
    std::this_thread::sleep_for(pause);
  }
  return Status();
}

}  // namespace rdmacoll::torch_ext
