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
constexpr int64_t kLookForInterruptNs = 100'000'000;
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

Result<SessionPtr> Sessions::look(const std::string& address, const std::string& name,
                                  Deadline deadline) {
  const std::lock_guard lock(set_up_mutex_);
  KnownSession* const known = known_.find(address);
  if (known != nullptr && known->state == KnownSession::State::Open) {
    known->session()->set_name(name);  // the other may have begun
    return known->use();
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
  int64_t interrupt_ns = clock_.now_ns() + kLookForInterruptNs;
  std::optional<FlightWaitGuard> noted;
  for (LinkerTurns turns(linker_, LinkerTurns::kMost);; turns.take()) {
    auto session = look(address, name, deadline);
    const bool is_under_way = session.status().code() == StatusCode::Timeout;
    if (!is_under_way || deadline.passed(clock_)) return session;
    if (!noted) noted.emplace(log_.wait(FlightKind::Meet, name));
    if (!interrupt || clock_.now_ns() < interrupt_ns) continue;
    RDMACOLL_RETURN_IF_ERROR(interrupt());
    interrupt_ns = clock_.now_ns() + kLookForInterruptNs;
  }
}

void Sessions::hear(const Transports::Offer& offer) {
  const auto note = session_note_of(offer.note);
  const Peer peer{offer.transport, offer.peer};
  const std::lock_guard lock(set_up_mutex_);
  const auto is_with = [&](const auto& meeting) {
    return meeting->path && meeting->path->transport == offer.transport &&
           meeting->path->peer == offer.peer;
  };
  auto found = std::ranges::find_if(meetings_, is_with);
  const auto is = [&](SessionNote::Kind kind, bool with_region) {
    return note && note->kind == kind && (offer.region != kNoRegion) == with_region;
  };
  if (is(SessionNote::Kind::Messages, false)) {
    if (found != meetings_.end()) (*found)->told = note->messages;
    if (KnownSession* const known = known_.find(peer)) known->session()->note_told(note->messages);
    return note_new();
  }
  if (!is(SessionNote::Kind::Memory, true) || !may_begin_anew(peer)) {
    if (offer.region != kNoRegion)
      offer.transport->close_region(offer.peer, offer.region, offer.key);
    return;
  }
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
  close_idle();
  were_any |= !meetings_.empty();
  for (const auto& meeting : meetings_) meeting->last = go_on(*meeting);  // it looks at the others
  std::erase_if(meetings_, [&](const auto& meeting) {
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
  if (const KnownSession* const known = known_.find(peer)) {
    known_.name(peer, meeting.address);
    if (known->state != KnownSession::State::Open) {
      return Status(StatusCode::Timeout,
                    meeting.name +
                        " has not said yet whether the last session with it is closed; its "
                        "process may be stopped, or at work");
    }
    known->session()->set_name(meeting.name);  // the other had begun, too
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
    RDMACOLL_RETURN_IF_ERROR(transports_.offer_region(
        path, meeting.own.id, pack(SessionNote{SessionNote::Kind::Memory})));
  }
  if (!meeting.theirs) {
    return Status(StatusCode::Timeout, meeting.name + " was met, but has not answered yet");
  }
  auto session = open(meeting);
  if (!session.ok()) return session.status();
  session.value()->note_told(meeting.told);
  known_.add(session.value(), clock_.now_ns());
  known_.name(peer, meeting.address);
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
    const Transports::Offer& offer = *meeting.theirs;
    offer.transport->close_region(offer.peer, offer.region, offer.key);
  }
  if (meeting.address.empty()) return;
  const Status& last = meeting.last;
  const Status named(last.code(), meeting.name + " cannot be reached: " + last.message());
  failed_.insert_or_assign(meeting.address, last.code() == StatusCode::Timeout ? last : named);
}

// Whether there was anything. Requests wait for a responder.
bool Sessions::answer_asked() {
  std::vector<Asked> asked;
  {
    const std::lock_guard set_up_lock(set_up_mutex_);
    {
      const std::lock_guard lock(mutex_);
      const bool may_answer = responder_ != nullptr || asked_.size() > kMostAsked;
      const auto waiting =
          std::stable_partition(asked_.begin(), asked_.end(), [&](const Asked& one) {
            return may_answer || one.what.kind != MessageHead::Kind::Request;
          });
      std::move(asked_.begin(), waiting, std::back_inserter(asked));
      asked_.erase(asked_.begin(), waiting);
    }
    for (const Asked& one : asked) answer(one);
  }
  if (!asked.empty()) note_new();
  return !asked.empty();
}

// While it is answered it is used.
void Sessions::answer(const Asked& asked) {
  const auto& [session, what] = asked;
  KnownSession* const known = known_.find(*session);
  if (known == nullptr) return;
  if (what.kind == MessageHead::Kind::Close) return hear_close(*known);
  if (what.kind == MessageHead::Kind::Keep) return hear_keep(*known);
  Result<std::string> text =
      responder_ != nullptr ? responder_->answer(known->use(), what.text)
                            : Status(StatusCode::Unsupported, "its process answers no requests");
  session->reply(what.number, text.status(), text.ok() ? text.take() : std::string());
}

}  // namespace rdmacoll
