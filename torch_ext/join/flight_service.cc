// The thread that hands out the flight recorder, and the signal handler. Floor: torch_ext/join.
#include "torch_ext/join/flight_service.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "csrc/base/process_id.h"
#include "csrc/base/same_user.h"
#include "csrc/engine/recorder/flight_dump.h"

namespace rdmacoll::torch_ext {
namespace {

constexpr time_t kSendSeconds = 2;  // for a client that does not read
constexpr int kPauseMs = 100;       // where there is no descriptor left for one

// All that the handler touches. A forked child inherits both and must not stir its parent's thread.
std::atomic<int> asked_descriptor{-1};
std::atomic<pid_t> owner{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int) {
  const int saved = errno;
  const uint64_t one = 1;
  if (owner.load() == ::getpid()) {
    [[maybe_unused]] const ssize_t wrote = ::write(asked_descriptor.load(), &one, sizeof(one));
  }
  errno = saved;
}

void take_signal(int descriptor) {
  asked_descriptor.store(descriptor);
  owner.store(::getpid());
  struct sigaction now{};
  if (::sigaction(SIGUSR2, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction ours{};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR2, &ours, nullptr);
}

Result<UniqueFd> listen_as(const std::string& name) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return Status::from_errno("socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // the first byte 0: abstract
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    return Status::from_errno("bind", errno);
  }
  if (::listen(listener.get(), SOMAXCONN) != 0) return Status::from_errno("listen", errno);
  return listener;
}

bool may_ask(int client) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return ::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         same_user_or_root(peer.uid);
}

void send_all(int client, const std::string& text) {
  const timeval limit{kSendSeconds, 0};
  ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t now = ::send(client, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return;
    sent += static_cast<size_t>(now);
  }
}

}  // namespace

Result<std::unique_ptr<FlightService>> FlightService::start(const Config& config) {
  auto random = random_process_id();
  if (!random.ok()) return random.status();
  auto listener =
      listen_as("rdmacoll-debug/" + std::to_string(::getpid()) + "/" + hex(random.value()));
  if (!listener.ok()) return listener.status();
  UniqueFd asked;
  if (!config.dump_dir.empty()) {
    asked = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!asked.valid()) return Status::from_errno("eventfd", errno);
    take_signal(asked.get());
  }
  return std::unique_ptr<FlightService>(new FlightService(listener.take(), std::move(asked)));
}

FlightService::FlightService(UniqueFd listener, UniqueFd asked)
    : listener_(std::move(listener)), asked_(std::move(asked)) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);  // signals are for the program's threads
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void FlightService::serve(std::shared_ptr<FlightRecorder> recorder) {
  const std::lock_guard<std::mutex> lock(mutex_);
  recorder_ = std::move(recorder);
}

std::shared_ptr<FlightRecorder> FlightService::recorder() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recorder_;
}

void FlightService::run() {
  while (true) {
    pollfd waited[] = {{listener_.get(), POLLIN, 0}, {asked_.get(), POLLIN, 0}};
    if (::poll(waited, 2, -1) < 0) continue;
    if (waited[0].revents != 0) answer();
    if (waited[1].revents != 0) write_file();
  }
}

void FlightService::answer() {
  const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client.valid()) ::poll(nullptr, 0, kPauseMs);
  if (!client.valid() || !may_ask(client.get())) return;
  if (const auto ours = recorder()) send_all(client.get(), flight_dump(*ours, "asked for"));
}

void FlightService::write_file() {
  uint64_t times;
  [[maybe_unused]] const ssize_t read = ::read(asked_.get(), &times, sizeof(times));
  const auto ours = recorder();
  if (ours == nullptr) return;
  auto path = write_flight_dump(*ours, "asked for by SIGUSR2", "");
  ours->log().write(LogLevel::Warn,
                    path.ok() ? "what it is doing is in " + path.value() : path.status().message());
}

}  // namespace rdmacoll::torch_ext
