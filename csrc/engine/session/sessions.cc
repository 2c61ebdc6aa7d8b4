// Sessions. Floor: engine/session. Thread: see sessions.h.
#include "csrc/engine/session/sessions.h"

#include <algorithm>
#include <iterator>

#include "csrc/base/check.h"
#include "csrc/engine/session/session_memory.h"
#include "csrc/engine/session/session_note.h"

namespace rdmacoll {
namespace {

// How long the other may take to answer one that this process did not begin.
constexpr int64_t kAnswerNs = 10'000'000'000;
constexpr int64_t kInterruptEveryNs = 100'000'000;
// What others may have asked before there is somebody to answer.
constexpr size_t kMostAsked = 1024;

}  // namespace

Sessions::Sessions(Transports& transports, Linker& linker, Progress& progress, const Clock& clock,
                   std::shared_ptr<FlightRecorder> recorder)
    : transports_(transports),
      linker_(linker),
      progress_(progress),
      clock_(clock),
      log_(clock, std::move(recorder)) {
  linker_.host(*this);
}

void Sessions::begin_to_be_driven() {
  std::call_once(begun_, [this] {
    log_.begin({});
    progress_.add(*this);
  });
}

Sessions::~Sessions() { progress_.remove(*this); }

void Sessions::answer_by(Responder* responder) {
  const std::lock_guard lock(set_up_mutex_);
  responder_ = responder;
  linker_.wake();  // for what was asked before
}

// --- set-up --------------------------------------------------------------------------------------

SessionPtr Sessions::known(const std::string& address) const {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? nullptr : found->second;
}

Result<SessionPtr> Sessions::look(const std::string& address, const std::string& name,
                                  Deadline deadline) {
  const std::lock_guard lock(set_up_mutex_);
  if (SessionPtr session = known(address)) {
    session->set_name(name);  // the other may have begun
    return session;
  }
  if (auto failed = failed_.extract(address)) return failed.mapped();
  auto found = std::ranges::find(meetings_, address, &Meeting::address);
  if (found == meetings_.end()) {
    begin_to_be_driven();
    meetings_.push_back(std::make_unique<Meeting>());
    found = std::prev(meetings_.end());
    (*found)->address = address;
    (*found)->name = name;
    (*found)->look_for_calls_ns = clock_.now_ns() + kLookForCallsNs;
    (*found)->last = Status(StatusCode::Timeout, name + " did not answer in time");
  }
  Meeting& meeting = **found;
  meeting.until_ns = std::max(meeting.until_ns, deadline.at_ns);
  return meeting.last;
}

Result<SessionPtr> Sessions::meet(const std::string& address, const std::string& name,
                                  Deadline deadline, const InterruptCheck& interrupt) {
  int64_t interrupt_ns = clock_.now_ns() + kInterruptEveryNs;
  std::optional<FlightWaitGuard> noted;
  for (LinkerTurns turns(linker_, LinkerTurns::kMost);; turns.take()) {
    auto session = look(address, name, deadline);
    const bool is_under_way = session.status().code() == StatusCode::Timeout;
    if (!is_under_way || deadline.passed(clock_)) return session;
    if (!noted) noted.emplace(log_.wait(FlightKind::Meet, name));
    if (!interrupt || clock_.now_ns() < interrupt_ns) continue;
    RDMACOLL_RETURN_IF_ERROR(interrupt());
    interrupt_ns = clock_.now_ns() + kInterruptEveryNs;
  }
}

void Sessions::hear(const Transports::Offer& offer) {
  const auto note = session_note_of(offer.note);
  if (note == SessionNote::Message && offer.region == kNoRegion) return note_new();
  const Peer peer{offer.transport, offer.peer};
  const std::lock_guard lock(set_up_mutex_);
  if (note != SessionNote::Memory || offer.region == kNoRegion || by_peer_.contains(peer)) {
    if (offer.region != kNoRegion) offer.transport->close_region(offer.peer, offer.region);
    return;
  }
  const auto is_with = [&](const auto& meeting) {
    return meeting->path && meeting->path->transport == offer.transport &&
           meeting->path->peer == offer.peer;
  };
  auto found = std::ranges::find_if(meetings_, is_with);
  if (found == meetings_.end()) {
    begin_to_be_driven();
    meetings_.push_back(std::make_unique<Meeting>());
    found = std::prev(meetings_.end());
    Path path;
    path.transport = offer.transport;
    path.peer = offer.peer;
    (*found)->path = path;
    (*found)->name = Session::kUnnamed;
    (*found)->until_ns = clock_.now_ns() + kAnswerNs;
  }
  (*found)->theirs = offer;
}

bool Sessions::turn() {
  bool were_any = release_ended();
  were_any |= answer_asked();
  const std::lock_guard lock(set_up_mutex_);
  were_any |= !meetings_.empty();
  std::erase_if(meetings_, [&](const auto& meeting) {
    meeting->last = go_on(*meeting);
    if (meeting->last.code() == StatusCode::Timeout && clock_.now_ns() < meeting->until_ns) {
      return false;
    }
    if (!meeting->last.ok()) give_up(*meeting);
    return true;
  });
  return were_any;
}

// Timeout: it is still under way.
Status Sessions::go_on(Meeting& meeting) {
  if (!meeting.path) RDMACOLL_RETURN_IF_ERROR(find(meeting));
  const Path& path = *meeting.path;
  const Peer peer{path.transport, path.peer};
  if (const auto found = by_peer_.find(peer); found != by_peer_.end()) {
    by_address_[meeting.address] = found->second;  // the other had begun, too
    found->second->set_name(meeting.name);
    return Status();
  }
  RDMACOLL_RETURN_IF_ERROR(path.transport->peer_status(path.peer));
  if (meeting.own.id == kNoRegion) {
    auto memory = SharedSegment::create(Session::own_bytes(path.transport->info()));
    if (!memory.ok()) return memory.status();
    meeting.own_memory = std::make_shared<SharedSegment>(memory.take());
    auto made = transports_.add_region(RegionMemory::all_of(meeting.own_memory));
    if (!made.ok()) return made.status();
    meeting.own = made.value();
    RDMACOLL_RETURN_IF_ERROR(
        transports_.offer_region(path, meeting.own.id, pack(SessionNote::Memory)));
  }
  if (!meeting.theirs) {
    return Status(StatusCode::Timeout, meeting.name + " was met, but has not answered yet");
  }
  auto session = open(meeting);
  if (!session.ok()) return session.status();
  by_peer_[peer] = session.value();
  if (!meeting.address.empty()) by_address_[meeting.address] = session.value();
  const std::lock_guard lock(mutex_);
  live_.push_back(session.value());
  new_.push_back(session.take());
  load_.has_new.store(true, std::memory_order_release);
  return Status();
}

// As a path, and the meeting that the other has begun meanwhile.
Status Sessions::find(Meeting& meeting) const {
  const int64_t now_ns = clock_.now_ns();
  const bool for_calls = now_ns >= meeting.look_for_calls_ns;
  if (for_calls) meeting.look_for_calls_ns = now_ns + kLookForCallsNs;
  auto path = transports_.look(meeting.address, for_calls);
  if (!path.ok()) return path.status();
  for (const auto& other : meetings_) {
    const bool is_same = other->path && other->path->transport == path.value().transport &&
                         other->path->peer == path.value().peer;
    if (is_same) return Status(StatusCode::Timeout, meeting.name + " is being answered");
  }
  meeting.path = path.take();
  return Status();
}

Result<SessionPtr> Sessions::open(const Meeting& meeting) {
  const Path& path = *meeting.path;
  auto theirs =
      path.transport->open_region(path.peer, meeting.theirs->key, Deadline::after_ms(clock_, 0));
  if (!theirs.ok()) return theirs.status();
  if (theirs.value().bytes < kSessionBytes) {
    path.transport->close_region(path.peer, theirs.value().id);
    return Status(StatusCode::PeerFailed,
                  meeting.name + " has offered a session too little memory");
  }
  const Link link{.transport = path.transport,
                  .peer = path.peer,
                  .block = theirs.value(),
                  .slab = theirs.value(),
                  .room = kSessionRoom,
                  .own_slab = meeting.own,
                  .own_room = kSessionRoom};
  return std::make_shared<Session>(
      link, meeting.own_memory, clock_, meeting.name,
      log_.of({.with = meeting.name, .reach = path.transport->info().name}));
}

void Sessions::give_up(const Meeting& meeting) {
  if (meeting.own.id != kNoRegion) transports_.release_region(meeting.own.id, Release::Withdraw);
  if (meeting.theirs) {
    meeting.theirs->transport->close_region(meeting.theirs->peer, meeting.theirs->region);
  }
  if (meeting.address.empty()) return;
  const Status& last = meeting.last;
  const Status named(last.code(), meeting.name + " cannot be reached: " + last.message());
  failed_.insert_or_assign(meeting.address, last.code() == StatusCode::Timeout ? last : named);
}

// Their memory is given back in the order that docs/TRANSPORTS.md, "Region ids", asks for.
bool Sessions::release_ended() {
  std::vector<SessionPtr> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  if (ended.empty()) return false;
  const std::lock_guard lock(set_up_mutex_);
  for (const SessionPtr& session : ended) {
    const auto is_it = [&](const auto& entry) { return entry.second == session; };
    std::erase_if(by_peer_, is_it);
    std::erase_if(by_address_, is_it);
    if (responder_ != nullptr) responder_->note_end(session);  // it still reads its lines
    const Link& link = session->link();
    transports_.release_region(link.own_slab.id, Release::Withdraw);
    link.transport->close_region(link.peer, link.slab.id);
  }
  return true;
}

// Whether there was anything.
bool Sessions::answer_asked() {
  std::vector<Asked> asked;
  {
    const std::lock_guard set_up_lock(set_up_mutex_);
    {
      const std::lock_guard lock(mutex_);
      if (responder_ == nullptr && asked_.size() <= kMostAsked) return false;
      asked.swap(asked_);
    }
    for (const auto& [session, what] : asked) {
      Result<std::string> text = responder_ != nullptr ? responder_->answer(session, what.text)
                                                       : Status(StatusCode::Unsupported,
                                                                "its process answers no requests");
      session->reply(what.number, text.status(), text.ok() ? text.take() : std::string());
    }
  }
  if (!asked.empty()) note_new();
  return !asked.empty();
}

// --- submissions and the driver ------------------------------------------------------------------

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
  uint64_t in_flight = 0;
  std::vector<Asked> asked;
  for (const SessionPtr& session : driven_) {
    std::vector<Session::Asked> of_session;
    moved |= session->advance(finished, of_session);
    for (Session::Asked& what : of_session) asked.push_back({session, std::move(what)});
    in_flight += session->in_flight();
    if (session->take_has_sent()) {
      const Link& link = session->link();
      // Where this cannot be said the other has ended.
      static_cast<void>(
          link.transport->offer_region(link.peer, kNoRegion, pack(SessionNote::Message)));
    }
  }
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
