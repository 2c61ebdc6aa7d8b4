// What rdmarun's agent answers a rank that comes to make the group, or asks for the job's secret.
// An input is the whole answer, after which the agent hangs up.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <thread>

#include "csrc/base/limits.h"
#include "csrc/memory/unique_fd.h"
#include "tests/fuzz/target.h"
#include "torch_ext/join/agent_bootstrap.h"

namespace rdmacoll::fuzz {
namespace {

constexpr uint32_t kWorld = 2;

// Answers one rank after the other, in a thread of its own.
class Agent {
 public:
  Agent() : name_("rdmacoll-fuzz-" + std::to_string(::getpid())) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data(), name_.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
    RDMACOLL_CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0);
    RDMACOLL_CHECK(::listen(listener_.get(), SOMAXCONN) == 0);
    std::thread([this] { serve(); }).detach();
  }

  std::string address() const { return "@" + name_; }
  void set_answer(const std::string& answer) {
    const std::lock_guard lock(mutex_);
    answer_ = answer;
  }

 private:
  void serve() {
    while (true) {
      const UniqueFd rank(::accept(listener_.get(), nullptr, nullptr));
      char asked[256];
      if (::recv(rank.get(), asked, sizeof(asked), 0) <= 0) continue;
      const std::lock_guard lock(mutex_);
      [[maybe_unused]] const ssize_t sent =
          ::send(rank.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
  }

  const std::string name_;
  const UniqueFd listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::mutex mutex_;
  std::string answer_;
};

std::string text(const std::string& bytes) {
  return bytes_of(static_cast<uint32_t>(bytes.size())) + bytes;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string taken = bytes_of(uint32_t{0}), refused = bytes_of(uint32_t{1});
  return {taken + bytes_of(kWorld) + text("record 0") + text("record 1"),
          taken + text(std::string(32, 's')), refused + text("rank 1 has left"),
          refused + text("")};
}

void run(const std::string& bytes) {
  static Agent& agent = *new Agent();  // its thread outlives main()
  agent.set_answer(bytes);
  torch_ext::AgentBootstrap bootstrap(agent.address(), 0, kWorld, [] { return Status(); });
  auto secret = bootstrap.secret(Deadline::after_ms(SteadyClock(), 5000));
  if (!secret.ok()) check_error(secret.status());
  RDMACOLL_CHECK(!secret.ok() || (secret.value().size() >= kSecretBytesMin &&
                                  secret.value().size() <= bytes.size()));
  auto records = bootstrap.all_gather("mine", Deadline::after_ms(SteadyClock(), 5000));
  if (!records.ok()) return check_error(records.status());
  RDMACOLL_CHECK(records.value().size() == kWorld);
  for (const std::string& record : records.value()) {
    RDMACOLL_CHECK(record.size() <= bytes.size());
  }
}

}  // namespace rdmacoll::fuzz
