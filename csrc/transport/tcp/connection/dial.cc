// Dial. Floor: transport/tcp/connection.
#include "csrc/transport/tcp/connection/dial.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "csrc/transport/tcp/network/sockets.h"

namespace rdmacoll::tcp {
namespace {

constexpr int64_t kNextAddressNs = 250'000'000;
constexpr int64_t kNextRoundNs = 300'000'000;
constexpr int kRounds = 3;
// After the last round: the other side, which this one cannot dial, may be able to dial it.
constexpr int64_t kLastWaitNs = 1'500'000'000;

}  // namespace

Dial::Progress Dial::advance(const Self& self, int64_t now_ns) {
  if (rounds_ >= kRounds) return now_ns >= next_at_ns_ ? Progress::Failed : Progress::Waits;
  begin_due(self, now_ns);
  if (advance_attempts(self)) return Progress::Met;
  if (!attempts_.empty() || next_ < order_.size()) return Progress::Waits;
  return end_round(now_ns);
}

void Dial::begin_due(const Self& self, int64_t now_ns) {
  if (is_counted_on()) return;
  while (next_ < order_.size() && (now_ns >= next_at_ns_ || (next_ > 0 && attempts_.empty()))) {
    next_at_ns_ = now_ns + kNextAddressNs;
    begin(order_[next_++], self);
  }
}

void Dial::begin(const Endpoint& to, const Self& self) {
  Result<ProcessId> nonce = random_process_id();
  if (!nonce.ok()) return note(to, nonce.status());
  SoleFd fd = begin_dialling(to);
  if (!fd.valid()) return note(to, Status(StatusCode::PeerFailed, std::strerror(errno)));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  ::epoll_ctl(self.wait_set.get(), EPOLL_CTL_ADD, fd.get(), &event);
  attempts_.push_back({HalfOpen(std::move(fd), Handshake::dialling(self.address, whom_, stream_,
                                                                   self.streams, nonce.value())),
                       to});
}

// Whether one has met the process; it is the only one then.
bool Dial::advance_attempts(const Self& self) {
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    switch (at->connection.advance(self.key)) {
      case HalfOpen::Progress::Waits:
        if (at->connection.handshake().has_proved()) {
          keep_only(at);
          return false;
        }
        ++at;
        continue;
      case HalfOpen::Progress::Met:
        keep_only(at);
        return true;
      case HalfOpen::Progress::HungUp:
        hung_up_ = true;
        note(at->to, Status(StatusCode::PeerFailed, "it hung up"));
        break;
      case HalfOpen::Progress::Failed:
        note(at->to, at->connection.why());
        break;
    }
    at = attempts_.erase(at);
  }
  return false;
}

void Dial::keep_only(std::list<Attempt>::iterator attempt) {
  attempts_.splice(attempts_.begin(), attempts_, attempt);
  attempts_.erase(std::next(attempts_.begin()), attempts_.end());
}

void Dial::note(const Endpoint& at, const Status& why) {
  if (why.code() == StatusCode::Mismatch && mismatch_.ok()) mismatch_ = why;
  reasons_ += (reasons_.empty() ? "" : "; ") + text_of(at) + ": " + why.message();
}

Dial::Progress Dial::end_round(int64_t now_ns) {
  if (!hung_up_) ++rounds_;
  last_reasons_ = std::exchange(reasons_, {});
  hung_up_ = false;
  next_ = 0;
  next_at_ns_ = now_ns + (rounds_ < kRounds ? kNextRoundNs : kLastWaitNs);
  return Progress::Waits;
}

Status Dial::failure() const {
  std::string reasons = reasons_.empty() ? last_reasons_ : reasons_;
  for (const Attempt& attempt : attempts_) {
    reasons += (reasons.empty() ? "" : "; ") + text_of(attempt.to) +
               (attempt.connection.connected() ? ": no greeting" : ": no answer");
  }
  return Status(mismatch_.ok() ? StatusCode::PeerFailed : StatusCode::Mismatch, reasons);
}

}  // namespace rdmacoll::tcp
