// secret_of_store(). Floor: torch_ext/join.
#include "torch_ext/join/store_secret.h"

#include <chrono>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "csrc/base/job_key.h"
#include "csrc/base/process_id.h"

namespace rdmacoll::torch_ext {
namespace {

constexpr char kKey[] = "rdmacoll/secret";
constexpr char kDrawers[] = "rdmacoll/secret/drawers";
constexpr char kNone[] = "none";
constexpr std::chrono::milliseconds kPause(1);
constexpr size_t kSecretBytes = 2 * sizeof(ProcessId);

Result<std::string> draw() {
  std::string drawn;
  while (drawn.size() < kSecretBytes) {
    auto random = random_process_id();
    if (!random.ok()) return random.status();
    drawn += bytes_to_sign(random.value());
  }
  return JobKey::load(drawn).ok() ? drawn : kNone;
}

// Groups have prefixes of their own, and their ranks are in other groups, too.
c10::intrusive_ptr<c10d::Store> without_prefixes(const c10::intrusive_ptr<c10d::Store>& store) {
  auto* const prefix = dynamic_cast<c10d::PrefixStore*>(store.get());
  return prefix == nullptr ? store : prefix->getUnderlyingNonPrefixStore();
}

// By a counter, not by Store::compareSet(), which not every kind of store has.
Result<std::string> first_word(c10d::Store& store, const InterruptCheck& interrupt,
                               Deadline deadline) {
  auto mine = draw();
  if (!mine.ok()) return mine.status();
  if (store.check({kKey})) return store.get_to_str(kKey);
  if (store.add(kDrawers, 1) == 1) {
    store.set(kKey, mine.value());
    return mine;
  }
  const SteadyClock clock;
  while (!store.check({kKey})) {
    RDMACOLL_RETURN_IF_ERROR(interrupt());
    if (deadline.passed(clock)) {
      return Status(StatusCode::Timeout,
                    "the rank that came first has not left the secret that it drew in the c10d "
                    "store; see whether it runs, or raise the timeout");
    }
    std::this_thread::sleep_for(kPause);
  }
  return store.get_to_str(kKey);
}

}  // namespace

Result<std::string> secret_of_store(const c10::intrusive_ptr<c10d::Store>& store,
                                    const InterruptCheck& interrupt, Deadline deadline) {
  try {
    auto word = first_word(*without_prefixes(store), interrupt, deadline);
    if (!word.ok() || word.value().size() == kSecretBytes) return word;
    if (word.value() == kNone) return std::string();
    return Status(StatusCode::Mismatch,
                  std::string("the c10d store that ranks meet in holds ") +
                      std::to_string(word.value().size()) + " bytes under '" + kKey +
                      "', and not the secret of " + std::to_string(kSecretBytes) +
                      " that ranks draw there: leave that key alone, or name a file with a secret "
                      "in RDMACOLL_SECRET_FILE");
  } catch (const std::exception& error) {
    return Status(
        StatusCode::System,
        std::string("the c10d store that ranks draw their secret in failed: ") + error.what());
  }
}

}  // namespace rdmacoll::torch_ext
