// A rank that has forked (a DataLoader's worker) and is then killed: the others see its end at once
// although the child lives on, whether they have met it or not.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "csrc/base/check.h"
#include "csrc/transport/shm/transport.h"
#include "tests/contract/cluster.h"
#include "tests/contract/says.h"
#include "tests/contract/tcp_pair.h"

namespace rdmacoll::forked_child_test {
namespace {

struct Opens {
  const char* name;
  std::unique_ptr<Transport> (*open)(const Clock& clock);
};

void outlive_nothing() { ::alarm(60); }

class ForkedChild : public ::testing::TestWithParam<Opens> {
 protected:
  ~ForkedChild() override {
    end_rank();
    if (board_.published(1, 1)) ::kill(child(), SIGKILL);
  }
  // Another rank, which does this with its transport, forks and sleeps; and its address.
  std::string start_rank(const std::function<void(Transport&)>& act) {
    rank_ = ::fork();
    RDMACOLL_CHECK(rank_ >= 0);
    if (rank_ == 0) {
      outlive_nothing();
      const auto theirs = GetParam().open(clock_);
      board_.publish(0, 1, theirs->info().address);
      act(*theirs);
      const pid_t child = ::fork();
      RDMACOLL_CHECK(child >= 0);
      if (child == 0) {
        outlive_nothing();
        for (;;) ::pause();
      }
      board_.publish(1, 1, std::to_string(child));
      for (;;) ::pause();
    }
    return read(0, 1);
  }
  void kill_rank_beside_its_child() {
    read(1, 1);
    end_rank();
  }
  bool child_lives() const { return ::kill(child(), 0) == 0; }
  std::string read(int round, int rank) const {
    while (!board_.published(round, rank)) ::usleep(200);
    return board_.read(round, rank);
  }
  Deadline in_ms(int64_t ms) const { return Deadline::after_ms(clock_, ms); }

  const SteadyClock clock_;
  Board board_;

 private:
  void end_rank() {
    if (rank_ <= 0) return;
    ::kill(rank_, SIGKILL);
    EXPECT_EQ(::waitpid(rank_, nullptr, 0), rank_);
    rank_ = 0;
  }
  pid_t child() const { return std::stoi(board_.read(1, 1)); }

  pid_t rank_ = 0;
};

TEST_P(ForkedChild, KeepsNoConnectionOpen) {
  const auto mine = GetParam().open(clock_);
  board_.publish(0, 0, mine->info().address);
  const std::string address = start_rank([&](Transport& theirs) {
    if (!theirs.connect(read(0, 0), in_ms(20'000)).ok()) ::_exit(1);
  });
  auto peer = mine->connect(address, in_ms(20'000));
  ASSERT_TRUE(peer.ok()) << peer.status().message();
  ASSERT_TRUE(mine->peer_status(peer.value()).ok());
  kill_rank_beside_its_child();
  const auto is_missed = [&] { return !mine->peer_status(peer.value()).ok(); };
  EXPECT_TRUE(tcp_until([&] { mine->poll(); }, is_missed, 2'000));
  EXPECT_TRUE(child_lives());
  EXPECT_TRUE(says(mine->peer_status(peer.value()), "ended"));
}

TEST_P(ForkedChild, KeepsNobodyListening) {
  const auto mine = GetParam().open(clock_);
  const std::string address = start_rank([](Transport&) {});
  kill_rank_beside_its_child();
  const Status status = mine->connect(address, in_ms(20'000)).status();
  EXPECT_EQ(status.code(), StatusCode::PeerFailed) << status.message();
  EXPECT_TRUE(child_lives());
}

std::unique_ptr<Transport> a_tcp(const Clock& clock) { return open_tcp(clock, {.streams = 2}); }
std::unique_ptr<Transport> a_shm(const Clock& clock) {
  return ShmTransport::open(Config(), clock, ThisProcess::make().take()).take();
}

INSTANTIATE_TEST_SUITE_P(Transports, ForkedChild,
                         ::testing::Values(Opens{"Tcp", a_tcp}, Opens{"Shm", a_shm}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rdmacoll::forked_child_test
