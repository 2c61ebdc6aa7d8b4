// HalfOpen: a connection that is still under way.
#include "csrc/transport/tcp/connection/half_open.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "csrc/transport/tcp/network/sockets.h"
#include "tests/unit/tcp/listeners.h"

namespace rdmacoll::tcp::half_open_test {
namespace {

// Sends signals to the thread that made it, one after the other, as a profiler or a timer does. The
// handler stays: one more signal may be under way at the end.
class Signals {
 public:
  Signals() {
    struct sigaction counts{};
    counts.sa_handler = [](int) { came.fetch_add(1); };
    ::sigaction(SIGUSR1, &counts, nullptr);
    sender_ = std::thread([this, to = ::pthread_self()] {
      while (!done_) {
        ::pthread_kill(to, SIGUSR1);
        std::this_thread::yield();
      }
    });
  }
  ~Signals() {
    done_ = true;
    sender_.join();
  }
  static inline std::atomic<int> came = 0;

 private:
  std::atomic<bool> done_ = false;
  std::thread sender_;
};

// A signal that comes as the socket is looked at ends the look, and not the connection.
TEST(HalfOpen, WaitsThroughSignals) {
  constexpr int kSignals = 1'000;
  const BlackHole hole;
  const JobKey key = JobKey::load("secret").take();
  HalfOpen connection(begin_dialling(hole.at()),
                      Handshake::dialling({{1}, 17, "host", {}}, {2}, 0, 1, {3}));
  const Signals signals;
  while (Signals::came < kSignals) {
    ASSERT_EQ(connection.advance(key), HalfOpen::Progress::Waits) << Signals::came << " signals";
  }
}

}  // namespace
}  // namespace rdmacoll::tcp::half_open_test
