// Linker. Floor: engine/connect. Thread: any.
#include "csrc/engine/connect/linker.h"

#include <poll.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

// How long a process that has called may take to be met.
constexpr int64_t kCallMs = 10'000;

}  // namespace

Linker::Linker(Transports& transports, const Clock& clock, std::shared_ptr<AlarmFd> alarm)
    : transports_(transports), clock_(clock), alarm_(std::move(alarm)) {}

void Linker::host(LinkGuest& guest) {
  const std::lock_guard lock(mutex_);
  guest_ = &guest;
}

uint32_t Linker::new_token() {
  const std::lock_guard lock(mutex_);
  return ++tokens_;
}

void Linker::add(uint32_t token, Rooms rooms, PeerLinks& links, int64_t timeout_ms) {
  links.when_wanted([this] { wake(); });
  const std::lock_guard lock(mutex_);
  const bool is_new =
      groups_
          .emplace(token, std::make_unique<LinkedGroup>(transports_, clock_, std::move(rooms),
                                                        links, timeout_ms))
          .second;
  RDMACOLL_CHECK(is_new);
}

void Linker::set_cards(uint32_t token, Cards cards, const Islands& islands) {
  const std::lock_guard lock(mutex_);
  groups_.at(token)->set_cards(std::move(cards), islands);
}

std::optional<std::string> Linker::address_of(uint32_t token, uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  return groups_.at(token)->address_of(rank);
}

std::map<uint32_t, Path> Linker::paths(uint32_t token) const {
  const std::lock_guard lock(mutex_);
  return groups_.at(token)->paths();
}

Status Linker::waits_for(uint32_t token, uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  return groups_.at(token)->waits_for(rank);
}

void Linker::remove(uint32_t token, Release how) {
  const std::lock_guard lock(mutex_);
  groups_.extract(token).mapped()->leave(how);
}

bool Linker::turn() {
  bool is_busy = false;
  {
    const std::lock_guard lock(mutex_);
    is_busy |= take_offers();
    is_busy |= meet_callers();
    for (const auto& [token, group] : groups_) is_busy |= group->turn();
    if (guest_ != nullptr) is_busy |= guest_->turn();
  }
  // Also where nothing was heard: over some transports only the driver hears what has come.
  if (drive_) drive_();
  return is_busy;
}

// Whether there were any.
bool Linker::take_offers() {
  Transports::Report report;
  transports_.serve(report);
  const Deadline deadline = Deadline::after_ms(clock_, kCallMs);
  for (Transports::Caller& caller : report.callers) callers_.emplace(std::move(caller), deadline);
  for (const Transports::Offer& offer : report.offers) {
    const uint32_t token = LinkNote::unpack(offer.note).token;
    if (token == kSessionToken) {
      if (guest_ != nullptr) guest_->hear(offer);
      continue;
    }
    if (offer.region == kNoRegion) {
      for (const auto& [token, group] : groups_) group->hear_refused(offer);
      continue;
    }
    const auto group = groups_.find(token);
    if (group == groups_.end()) {
      refuse(offer);
    } else {
      group->second->hear(offer);
    }
  }
  return !report.offers.empty();
}

// This rank of the group has left. Whoever offers a link to it hears that by its own note.
void Linker::refuse(const Transports::Offer& offer) {
  offer.transport->close_region(offer.peer, offer.region, offer.key);
  // Where this cannot be said the peer has ended, or will find that this process has.
  static_cast<void>(offer.transport->offer_region(offer.peer, kNoRegion, offer.note));
}

// Whoever calls is met: what it wants, its offers say. Whether there are any.
bool Linker::meet_callers() {
  const bool are_any = !callers_.empty();
  std::erase_if(callers_, [&](const auto& one) {
    const auto& [caller, deadline] = one;
    return transports_.meet(caller).code() != StatusCode::Timeout || deadline.passed(clock_);
  });
  return are_any;
}

void Linker::sleep(std::optional<std::chrono::microseconds> time) const {
  std::vector<pollfd> waited{{alarm_->get(), POLLIN, 0}};
  for (const int fd : transports_.set_up_fds()) waited.push_back({fd, POLLIN, 0});
  timespec left{};
  if (time) {
    left.tv_sec = time->count() / 1'000'000;
    left.tv_nsec = time->count() % 1'000'000 * 1000;
  }
  if (::ppoll(waited.data(), waited.size(), time ? &left : nullptr, nullptr) <= 0) return;
  if (waited[0].revents != 0) alarm_->ring_in_ns(this, AlarmFd::kNever);
}

void LinkerTurns::take() {
  if (linker_.turn()) {
    linker_.sleep(pause_);
    pause_ = std::min(2 * pause_, kMost);
  } else {
    pause_ = kLeast;
    linker_.sleep(most_);
  }
}

}  // namespace rdmacoll
