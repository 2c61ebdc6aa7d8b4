// tcp: how a peer ends. One that is killed is missed at once, one that leaves has said all that it
// had to say, one that is stopped lives on, and after a fence nothing lands.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "tests/contract/cluster.h"
#include "tests/contract/says.h"
#include "tests/contract/tcp_pair.h"
#include "tests/contract/tcp_rogue.h"
#include "tests/processes/holdings.h"

namespace rdmacoll::tcp_failure_test {
namespace {

// A transport in a process of its own, which has met one here. It polls until it is killed.
class Child {
 public:
  static constexpr uint64_t kBytes = 4 << 20;

  explicit Child(const TcpOptions& options = TcpOptions())
      : pid_(::fork()), transport_(pid_ == 0 ? nullptr : open_tcp(clock_, options)) {
    if (pid_ == 0) live(options);
    region_ = make_region(*transport_, 0, kBytes).take();
    board_.publish(0, 0, transport_->info().address);
    while (!board_.published(0, 1)) std::this_thread::yield();
    auto met = transport_->connect(board_.read(0, 1), Deadline::after_ms(clock_, 20'000));
    EXPECT_TRUE(met.ok()) << met.status().message();
    peer_ = met.value();
    EXPECT_TRUE(transport_->offer_region(peer_, 0, kNoNote).ok());
    board_.publish(1, 0, region_.key);
    while (!board_.published(1, 1)) std::this_thread::yield();
    EXPECT_TRUE(
        transport_->open_region(peer_, board_.read(1, 1), Deadline::after_ms(clock_, 20'000))
            .status()
            .ok());
  }
  ~Child() {
    kill(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void kill(int signal) { ::kill(pid_, signal); }
  void stop() {
    kill(SIGSTOP);
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOWAIT), 0);
  }
  TcpTransport& transport() { return *transport_; }
  Status status() const { return transport_->peer_status(peer_); }
  bool until(const std::function<bool()>& holds, int64_t timeout_ms = 20'000) {
    return tcp_until([this] { transport_->poll(); }, holds, timeout_ms);
  }
  Posted put(Ticket* ticket) {
    return transport_->put(peer_, 0, {region_.base, kBytes / 2, 0}, {0, kBytes / 2, kBytes / 2},
                           ticket);
  }
  Posted signal(uint64_t counter) {
    return transport_->signal(peer_, 0, {0, 0, kLineBytes}, counter, Header());
  }
  // What the child signals back: the last that has come to it.
  uint64_t echoed() const {
    return reinterpret_cast<Line*>(region_.base)->counter.load(std::memory_order_acquire);
  }

 private:
  [[noreturn]] void live(const TcpOptions& options) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto mine = open_tcp(clock_, options);
    const MadeRegion region = make_region(*mine, 0, kBytes).take();
    board_.publish(0, 1, mine->info().address);
    while (!board_.published(0, 0)) std::this_thread::yield();
    const Deadline deadline = Deadline::after_ms(clock_, 20'000);
    const PeerId peer = mine->connect(board_.read(0, 0), deadline).value();
    if (!mine->offer_region(peer, 0, kNoNote).ok()) ::_exit(1);
    board_.publish(1, 1, region.key);
    while (!board_.published(1, 0)) std::this_thread::yield();
    if (!mine->open_region(peer, board_.read(1, 0), deadline).ok()) ::_exit(1);
    uint64_t echoed = 0;
    while (true) {
      mine->poll();
      const uint64_t now = reinterpret_cast<Line*>(region.base)->counter.load();
      if (now > echoed &&
          mine->signal(peer, 0, {0, 0, kLineBytes}, now, Header()) == Posted::Done) {
        echoed = now;
      }
      std::this_thread::yield();
    }
  }

  Board board_;
  const SteadyClock clock_;
  const pid_t pid_;
  std::unique_ptr<TcpTransport> transport_;
  MadeRegion region_;
  PeerId peer_ = 0;
};

// --- killed --------------------------------------------------------------------------------------

TEST(TcpFailure, AKilledPeerIsMissedAtOnceThoughNothingIsSentToIt) {
  for (const int64_t streams : {1, 3}) {
    Child child({.streams = streams});
    ASSERT_EQ(child.signal(1), Posted::Done);
    ASSERT_TRUE(child.until([&] { return child.echoed() == 1; }));
    child.kill(SIGKILL);
    EXPECT_TRUE(is_readable(child.transport().info().attention_fd, 5'000));  // it wakes
    EXPECT_TRUE(child.until([&] { return !child.status().ok(); }, 5'000));
    EXPECT_EQ(child.status().code(), StatusCode::PeerFailed);
    EXPECT_TRUE(says(child.status(), "ended")) << child.status().message();
  }
}

TEST(TcpFailure, AKilledPeerIsMissedInTheMiddleOfTheTraffic) {
  for (const int64_t streams : {1, 3}) {
    Child child({.streams = streams});
    Ticket ticket;
    for (uint64_t i = 1; i < 50; ++i) {
      child.put(&ticket);
      child.signal(i);
      child.transport().poll();
    }
    child.kill(SIGKILL);
    EXPECT_TRUE(child.until([&] { return !child.status().ok(); }, 5'000));
    EXPECT_TRUE(says(child.status(), "ended")) << child.status().message();
    // Posting to it is harmless from now on, and everything is done.
    EXPECT_TRUE(ticket.done());
    EXPECT_EQ(child.put(&ticket), Posted::Done);
    EXPECT_EQ(child.signal(99), Posted::Done);
  }
}

// --- stopped -------------------------------------------------------------------------------------

TEST(TcpFailure, AStoppedPeerIsAliveAndGoesOn) {
  Child child;
  child.stop();
  ASSERT_EQ(child.signal(1), Posted::Done);
  EXPECT_FALSE(child.until([&] { return !child.status().ok(); }, 3'000))
      << child.status().message();
  child.kill(SIGCONT);
  EXPECT_TRUE(child.until([&] { return child.echoed() == 1; }));
}

// Its host acknowledges, but takes nothing, and is asked ever more seldom whether it does: for much
// longer than RDMACOLL_TCP_TIMEOUT_MS, which is a second here.
TEST(TcpFailure, AStoppedPeerIsAliveAndGoesOnThoughItsSocketsAreFull) {
  Child child({.streams = 2});
  child.stop();
  Ticket ticket;
  const auto fill = [&] {
    child.put(&ticket);
    return !child.status().ok();
  };
  EXPECT_FALSE(child.until(fill, 6'000)) << child.status().message();
  EXPECT_FALSE(ticket.done());
  child.kill(SIGCONT);
  EXPECT_TRUE(child.until([&] { return ticket.done() && child.signal(1) == Posted::Done; }));
  EXPECT_TRUE(child.until([&] { return child.echoed() == 1; }));
  EXPECT_TRUE(child.status().ok()) << child.status().message();
}

// --- leaving -------------------------------------------------------------------------------------

TEST(TcpFailure, WhatWasQueuedBeforeLeavingComesAndThenItHasLeft) {
  constexpr uint64_t kBytes = 1 << 20;
  for (const int64_t streams : {1, 2, 8}) {
    TcpPair pair({.streams = streams, .region_bytes = 3 * kBytes});
    uint64_t sent = 0;
    Ticket ticket;
    std::memset(pair.region[1].base + 2 * kBytes, 0x77, kBytes);
    while (pair.put(1, kBytes, 2 * kBytes, kBytes, &ticket) != Posted::Full &&
           pair.signal(1, sent + 1) != Posted::Full) {
      ++sent;
    }
    EXPECT_GT(sent, 20u);
    std::thread leaves([&] { pair.transport[1].reset(); });
    EXPECT_TRUE(tcp_until([&] { pair.at(0).poll(); },
                          [&] {
                            // What is sent to one that leaves, and has left, takes nothing back.
                            pair.put(0, 64, 2 * kBytes, kBytes, &ticket);
                            return !pair.status(0).ok();
                          }));
    leaves.join();
    EXPECT_EQ(pair.counter(0), sent);
    EXPECT_EQ(pair.region[0].base[2 * kBytes - 1], std::byte{0x77});
    EXPECT_TRUE(says(pair.status(0), "left")) << pair.status(0).message();
  }
}

// This side has read nothing of it yet, and finds out by what it sends, or by reading.
TEST(TcpFailure, WhatCameBeforeItLeftIsReadAlthoughItTakesNothingAnyMore) {
  for (const auto& [streams, sends] :
       {std::pair(1, true), {2, true}, {8, true}, {1, false}, {2, false}, {8, false}}) {
    TcpPair pair({.streams = streams, .region_bytes = 1 << 20});
    Ticket ticket;
    for (uint64_t i = 1; i <= 100; ++i) ASSERT_EQ(pair.signal(1, i), Posted::Done);
    // As much as one that does not read has room for: what has not arrived is lost by a reset.
    const uint64_t bytes = streams == 8 ? 300'000 : sends ? 50'000 : 400'000;
    ASSERT_NE(pair.put(1, bytes, 400'000, 400'000, &ticket), Posted::Full);
    ASSERT_EQ(pair.signal(1, 101), Posted::Done);
    pair.transport[1].reset();
    ticket = Ticket();
    for (uint64_t i = 1; sends && i <= 20; ++i) {
      pair.signal(0, i);
      pair.put(0, 300'000, 400'000, 400'000, &ticket);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(pair.until([&] { return !pair.status(0).ok(); }, 5'000));
    EXPECT_EQ(pair.counter(0), 101u);
    EXPECT_TRUE(says(pair.status(0), "left")) << pair.status(0).message();
    EXPECT_TRUE(ticket.done());
  }
}

TEST(TcpFailure, LeavingWaitsForNobodyForEver) {
  TcpPair pair({.region_bytes = 2 << 20});
  Ticket ticket;
  while (pair.put(0, 1 << 20, 0, 1 << 20, &ticket) != Posted::Full) pair.at(0).poll();
  const Deadline ten_times = Deadline::after_ms(pair.clock, 10'000);
  pair.transport[0].reset();
  EXPECT_FALSE(ten_times.passed(pair.clock));
  EXPECT_TRUE(pair.until([&] { return !pair.status(1).ok(); }));
}

TEST(TcpFailure, BothMayLeaveAtOnce) {
  for (const int64_t streams : {1, 3}) {
    TcpPair pair({.streams = streams});
    const Deadline soon = Deadline::after_ms(pair.clock, 900);
    std::thread one([&] { pair.transport[0].reset(); });
    pair.transport[1].reset();
    one.join();
    EXPECT_FALSE(soon.passed(pair.clock));  // neither waits in vain for the other
  }
}

// --- one of several connections ------------------------------------------------------------------

// By what lies between the hosts.
TEST(TcpFailure, AConnectionThatIsCutEndsThePeer) {
  const TcpOptions options{.streams = 3};
  for (const size_t cut : {0, 1, 2}) {
    const SteadyClock clock;
    const auto victim = open_tcp(clock, options);
    TcpRogue rogue(*victim, options);
    ASSERT_EQ(::shutdown(rogue.fd(cut), SHUT_RDWR), 0);
    EXPECT_TRUE(tcp_until([&] { victim->poll(); }, [&] { return !rogue.status().ok(); }, 10'000));
    EXPECT_TRUE(says(rogue.status(), "ended")) << rogue.status().message();
  }
}

// --- fence ---------------------------------------------------------------------------------------

TEST(TcpFailure, AfterAFenceNothingLands) {
  for (const int64_t streams : {1, 3}) {
    for (int pause_us = 0; pause_us < 2'000; pause_us += 250) {
      TcpPair pair({.streams = streams, .region_bytes = 4 << 20});
      std::memset(pair.region[0].base, 1, pair.region[0].bytes);
      Ticket ticket;
      for (int i = 0; i < 20; ++i) pair.put(0, 1 << 20, 1 << 20, 1 << 20, &ticket);
      pair.signal(0, 1);
      pair.at(0).poll();
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
      pair.at(1).poll();
      EXPECT_TRUE(pair.at(1).fence(pair.peer[1], Deadline::after_ms(pair.clock, 1'000)).ok());
      EXPECT_TRUE(says(pair.status(1), "was cut off")) << pair.status(1).message();
      std::memset(pair.region[1].base, 0, pair.region[1].bytes);
      EXPECT_TRUE(pair.until([&] { return !pair.status(0).ok(); }, 5'000));
      EXPECT_TRUE(ticket.done());
      for (uint64_t i = 0; i < pair.region[1].bytes; ++i) {
        ASSERT_EQ(pair.region[1].base[i], std::byte{0});
      }
    }
  }
}

TEST(TcpFailure, AProcessCannotCutItselfOff) {
  const SteadyClock clock;
  const auto one = open_tcp(clock);
  const PeerId self = one->connect(one->info().address, Deadline::after_ms(clock, 1'000)).value();
  EXPECT_EQ(one->fence(self, Deadline::after_ms(clock, 1'000)).code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(one->peer_status(self).ok());
}

// --- fork, and what is left ----------------------------------------------------------------------

TEST(TcpFailure, TheExitOfAForkedChildDisturbsNobody) {
  TcpPair pair({.streams = 2});
  const pid_t child = ::fork();
  if (child == 0) {
    pair.transport[0].reset();
    pair.transport[1].reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.signal(i, 1), Posted::Done);
    EXPECT_TRUE(pair.until([&] { return pair.counter(1 - i) == 1; }));
    EXPECT_TRUE(pair.status(i).ok()) << pair.status(i).message();
  }
}

TEST(TcpFailure, NothingIsLeftBehind) {
  const Holdings before;
  for (const int64_t streams : {1, 8}) {
    TcpPair pair({.streams = streams});
    const Region offered = make_region(pair.at(0), 1, 1 << 20).take();  // and never opened
    EXPECT_TRUE(pair.at(0).offer_region(pair.peer[0], offered.id, kNoNote).ok());
    EXPECT_TRUE(pair.at(1).fence(pair.peer[1], Deadline::after_ms(pair.clock, 1'000)).ok());
  }
  EXPECT_EQ(Holdings(), before);
}

}  // namespace
}  // namespace rdmacoll::tcp_failure_test
