// Sessions: what is handed to the driver, and what it does. Floor: engine/session. Thread: see
// sessions.h.
#include <algorithm>
#include <iterator>

#include "csrc/engine/session/session_note.h"
#include "csrc/engine/session/sessions.h"

namespace rdmacoll {

void Sessions::note_new() {
  load_.has_new.store(true, std::memory_order_release);
  progress_.notify({});
}

Status Sessions::submit(Session& session, RequestPtr request) {
  RDMACOLL_RETURN_IF_ERROR(session.submit(std::move(request)));
  note_new();
  return Status();
}

Status Sessions::submit(Session& session, std::unique_ptr<Transfer> transfer) {
  RDMACOLL_RETURN_IF_ERROR(session.submit(std::move(transfer)));
  note_new();
  return Status();
}

void Sessions::submit(Watch watch) {
  begin_to_be_driven();
  {
    const std::lock_guard lock(mutex_);
    new_watches_.push_back(std::move(watch));
  }
  note_new();
}

void Sessions::finish(const Watch& watch, const Status& how, std::vector<Completion>& finished) {
  log_.end(watch.record, how);
  finished.push_back({watch.work, how});
}

void Sessions::take_new() {
  const std::lock_guard lock(mutex_);
  std::move(new_.begin(), new_.end(), std::back_inserter(driven_));
  for (Watch& watch : new_watches_) {
    watch.record = log_.add(watch.kind, 0);
    log_.start_with_last(watch.record);
  }
  std::move(new_watches_.begin(), new_watches_.end(), std::back_inserter(watches_));
  new_.clear();
  new_watches_.clear();
}

bool Sessions::advance(std::vector<Completion>& finished) {
  check_driver();
  if (load_.has_new.exchange(false, std::memory_order_acq_rel)) {
    take_new();
    check_ends(finished);
  }
  bool moved = false;
  bool is_one_closed = false;
  uint64_t in_flight = 0;
  std::vector<Asked> asked;
  for (const SessionPtr& session : driven_) {
    std::vector<Session::Asked> of_session;
    moved |= session->advance(finished, of_session);
    for (Session::Asked& what : of_session) asked.push_back({session, std::move(what)});
    in_flight += session->in_flight();
    is_one_closed |= session->is_closed();
    if (const auto sent = session->take_sent()) {
      const Link& link = session->link();
      // Where this cannot be said the other has ended.
      static_cast<void>(link.transport->offer_region(link.peer, kNoRegion,
                                                     pack({SessionNote::Kind::Messages, *sent})));
    }
  }
  if (is_one_closed) check_ends(finished);
  const size_t watched = std::erase_if(watches_, [&](const Watch& watch) {
    if (!watch.is_true()) return false;
    finish(watch, watch.verdict ? watch.verdict() : Status(), finished);
    return true;
  });
  moved |= watched > 0;
  load_.in_flight.store(in_flight + watches_.size(), std::memory_order_release);
  if (!asked.empty()) {
    const std::lock_guard lock(mutex_);
    std::move(asked.begin(), asked.end(), std::back_inserter(asked_));
    linker_.wake();
  }
  return moved;
}

void Sessions::check(std::vector<Completion>& finished) {
  const int64_t now_ns = clock_.now_ns();
  for (const SessionPtr& session : driven_) session->check(finished, now_ns);
  check_ends(finished);
  std::erase_if(watches_, [&](const Watch& watch) {
    if (watch.deadline_ns > now_ns) return false;
    finish(watch, Status(StatusCode::Timeout, watch.what), finished);
    return true;
  });
}

void Sessions::check_ends(std::vector<Completion>& finished) {
  std::erase_if(driven_, [&](const SessionPtr& session) {
    if (!session->has_ended(finished)) return false;
    const std::lock_guard lock(mutex_);
    std::erase(live_, session);
    std::erase_if(asked_, [&](const Asked& asked) { return asked.session == session; });
    ended_.push_back(session);
    linker_.wake();
    return true;
  });
}

// An idle session is not driven, and hears of its end so. A round is done for its sake all the
// same: for what comes when transports are polled, should the word that it has come be lost.
bool Sessions::beat() {
  const std::lock_guard lock(mutex_);
  const bool has_end = std::ranges::any_of(live_, [](const SessionPtr& session) {
    return !session->link().transport->peer_status(session->link().peer).ok();
  });
  if (!live_.empty() && clock_.now_ns() >= look_for_idle_ns_.load()) linker_.wake();
  if (has_end) load_.has_new.store(true, std::memory_order_release);
  return !live_.empty();
}

void Sessions::close(std::vector<Completion>& finished) {
  const Status closed(StatusCode::Aborted, "this process leaves");
  take_new();
  for (const SessionPtr& session : driven_) session->fail(closed, finished);
  for (const Watch& watch : watches_) finish(watch, closed, finished);
  driven_.clear();
  watches_.clear();
}

}  // namespace rdmacoll
