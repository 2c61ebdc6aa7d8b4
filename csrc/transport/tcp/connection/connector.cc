// Connector. Floor: transport/tcp/connection.
#include "csrc/transport/tcp/connection/connector.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace rdmacoll::tcp {
namespace {

// What processes that have not proved themselves may cost: so many connections at once, each for so
// long. Others wait in the listener's queue; each of them takes the place of the oldest that has
// had time to prove itself. An honest one that was slower dials again.
constexpr size_t kMostStrangers = 64;
constexpr int64_t kStrangerNs = 1'000'000'000;
constexpr int64_t kTimeToProveNs = 200'000'000;

// When callers for whom there was no descriptor are looked at again.
constexpr int64_t kNoDescriptorNs = 50'000'000;

// How long the process with the larger id waits to be dialled. Where both want to meet that is time
// enough in most networks, and else one dial too many is made.
constexpr int64_t kCallBackNs = 5'000'000;

// How long a process stays wanted after it was last asked for.
constexpr int64_t kWantedNs = 10'000'000'000;

}  // namespace

bool Connector::Meeting::is_complete() const {
  return std::all_of(connections.begin(), connections.end(),
                     [](const auto& connection) { return connection.has_value(); });
}

// --- opening -------------------------------------------------------------------------------------

Result<std::unique_ptr<Connector>> Connector::open(const TcpConfig& config, const JobKey& key,
                                                   const Address& me, const Clock& clock,
                                                   SetUpNews& news) {
  std::unique_ptr<Connector> connector(new Connector(config, key, me, clock, news));
  RDMACOLL_RETURN_IF_ERROR(connector->listen());
  return connector;
}

Connector::Connector(const TcpConfig& config, const JobKey& key, const Address& me,
                     const Clock& clock, SetUpNews& news)
    : config_(config),
      key_(key),
      me_(me),
      clock_(clock),
      news_(news),
      wait_set_(::epoll_create1(EPOLL_CLOEXEC)) {}

Status Connector::listen() {
  if (!wait_set_.valid()) return Status::from_errno("epoll_create", errno);
  RDMACOLL_RETURN_IF_ERROR(watch(news_.get(), EPOLLIN));
  auto all = system_interfaces();
  if (!all.ok()) return all.status();
  auto chosen = choose_interfaces(all.take(), config_.interfaces);
  if (!chosen.ok()) return chosen.status();
  interfaces_ = chosen.take();
  for (const Interface& one : interfaces_) {
    auto listener = listen_at(one.ip, config_.ports);
    if (!listener.ok()) return listener.status();
    RDMACOLL_RETURN_IF_ERROR(watch(listener.value().fd.get(), EPOLLIN | EPOLLET));
    listeners_.push_back(listener.take());
  }
  return Status();
}

Status Connector::watch(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  if (::epoll_ctl(wait_set_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status();
  return Status::from_errno("watching a descriptor", errno);
}

std::vector<Endpoint> Connector::endpoints() const {
  std::vector<Endpoint> all;
  for (const Listener& listener : listeners_) all.push_back(listener.at);
  return all;
}

// --- whom to meet --------------------------------------------------------------------------------

Connector::Meeting& Connector::meeting_with(const ProcessId& process) {
  Meeting& meeting = meetings_[process];
  meeting.connections.resize(static_cast<size_t>(config_.streams));
  return meeting;
}

void Connector::meet(const Address& theirs) {
  Meeting& meeting = meeting_with(theirs.process);
  meeting.asked_at_ns = clock_.now_ns();
  if (meeting.wanted) return;
  meeting.wanted = theirs;
  meeting.dial_at_ns = clock_.now_ns() + (me_.process < theirs.process ? 0 : kCallBackNs);
}

// What the other side has begun stays.
void Connector::forget(const ProcessId& process) {
  const auto found = meetings_.find(process);
  if (found == meetings_.end()) return;
  found->second.wanted.reset();
  found->second.dial.reset();
  found->second.failure = Status();
}

std::optional<Connections> Connector::take_met(const ProcessId& process) {
  const auto found = meetings_.find(process);
  if (found == meetings_.end() || !found->second.is_complete()) return std::nullopt;
  Connections met;
  for (auto& connection : found->second.connections) {
    ::epoll_ctl(wait_set_.get(), EPOLL_CTL_DEL, connection->fd.get(), nullptr);
    met.push_back(std::move(*connection));
  }
  met_.insert(process);
  meetings_.erase(found);
  return met;
}

bool Connector::is_called_by(const ProcessId& process) const {
  const auto found = meetings_.find(process);
  return found != meetings_.end() && found->second.connections[0].has_value();
}

Status Connector::failure_of(const ProcessId& process) const {
  const auto found = meetings_.find(process);
  return found == meetings_.end() ? Status() : found->second.failure;
}

std::string Connector::why_not(const ProcessId& process) const {
  std::string text;
  const auto found = meetings_.find(process);
  if (found != meetings_.end() && found->second.dial) {
    const std::string reasons = found->second.dial->failure().message();
    if (!reasons.empty()) text += "; dialling it: " + reasons;
  }
  if (!turned_away_.empty()) text += "; meanwhile this process turned one away: " + turned_away_;
  return text;
}

// --- serving -------------------------------------------------------------------------------------

// By edges, but for the news: what stays ready (a listener whose callers have to wait, a dialled
// connection that takes more) wakes once.
bool Connector::wait(int64_t ms) const {
  epoll_event seen[64];
  return ::epoll_wait(wait_set_.get(), seen, std::size(seen), static_cast<int>(ms)) > 0;
}

void Connector::serve() {
  news_.begin_look();
  advance_strangers();  // who has proved itself by now loses no place
  accept();
  advance_strangers();
  look_again_at_strangers();
  for (auto& [process, meeting] : meetings_) {
    if (clock_.now_ns() >= meeting.asked_at_ns + kWantedNs) forget(process);
    advance_dial(process, meeting);
  }
}

// One from each listener by turns, so that a flood at one address keeps nobody out at another.
void Connector::accept() {
  size_t idle = 0;  // listeners in a row where nobody has called
  while (idle < listeners_.size() && has_place()) {
    const Listener& listener = listeners_[turn_++ % listeners_.size()];
    SoleFd fd = accept_from(listener);
    idle = fd.valid() ? 0 : idle + 1;
    if (!fd.valid() && errno != EAGAIN) news_.look_again_in_ns(kNoDescriptorNs);
    if (!fd.valid()) continue;
    Result<ProcessId> nonce = random_process_id();
    if (!nonce.ok()) return;
    if (!watch(fd.get(), EPOLLIN | EPOLLRDHUP | EPOLLET).ok()) return;
    const auto streams = static_cast<uint8_t>(config_.streams);
    strangers_.push_back(
        {HalfOpen(std::move(fd), Handshake::accepting(me_.process, streams, nonce.value())),
         clock_.now_ns()});
    if (strangers_.size() > kMostStrangers) strangers_.pop_front();
  }
}

bool Connector::has_place() const {
  return strangers_.size() < kMostStrangers ||
         clock_.now_ns() >= strangers_.front().since_ns + kTimeToProveNs;
}

// Of whom nothing may come: the oldest is to go in its time, or to make place.
void Connector::look_again_at_strangers() {
  if (strangers_.empty()) return;
  const int64_t for_ns = has_place() ? kStrangerNs : kTimeToProveNs;
  const int64_t due_in_ns = strangers_.front().since_ns + for_ns - clock_.now_ns();
  news_.look_again_in_ns(std::max<int64_t>(due_in_ns, 0));
}

void Connector::advance_strangers() {
  const int64_t now_ns = clock_.now_ns();
  std::erase_if(strangers_, [&](Stranger& stranger) {
    switch (stranger.connection.advance(key_)) {
      case HalfOpen::Progress::Waits:
        return now_ns >= stranger.since_ns + kStrangerNs;
      case HalfOpen::Progress::Met:
        take_stranger(stranger);
        return true;
      case HalfOpen::Progress::Failed:
        turned_away_ = stranger.connection.why().message();
        return true;
      case HalfOpen::Progress::HungUp:
        return true;
    }
    return true;
  });
}

// One that has proved itself. Of two that dial each other only what the smaller id has begun
// counts, so both decide alike.
void Connector::take_stranger(Stranger& stranger) {
  Handshake& handshake = stranger.connection.handshake();
  const ProcessId other = handshake.other();
  if (met_.contains(other)) {
    handshake.refuse(Verdict::KnownAlready);
    stranger.connection.say();
    return;
  }
  if (meetings_.size() >= kMaxPeers && !meetings_.contains(other)) return;
  Meeting& meeting = meeting_with(other);
  const bool dials_it = meeting.dial && meeting.dial->is_counted_on() && me_.process < other;
  if (dials_it || meeting.way) {
    handshake.refuse(Verdict::Busy);
    stranger.connection.say();
    return;
  }
  if (!stranger.connection.say()) return;
  meeting.dial.reset();
  meeting.way.reset();
  meeting.failure = Status();
  meeting.connections[handshake.stream()] =
      Connection{stranger.connection.take_fd(), handshake.keys()};
  const int fd = meeting.connections[handshake.stream()]->fd.get();
  meeting.caller = handshake.dialler();
  meeting.caller->endpoints.push_back(other_end_of(fd));
  if (handshake.stream() == 0 || meeting.is_complete()) note_caller(other, meeting);
}

void Connector::note_caller(const ProcessId& process, const Meeting& meeting) {
  news_.note_caller(process, encode(meeting.wanted ? *meeting.wanted : *meeting.caller));
}

void Connector::advance_dial(const ProcessId& process, Meeting& meeting) {
  const bool is_mine = meeting.way.has_value();
  if (!meeting.wanted || meeting.is_complete() || !meeting.failure.ok()) return;
  if (meeting.connections[0] && !is_mine) return;  // the other side dials
  if (!meeting.dial) {
    if (clock_.now_ns() < meeting.dial_at_ns) return;
    begin_dial(process, meeting);
  }
  const Self self{me_, static_cast<uint8_t>(config_.streams), key_, wait_set_};
  switch (meeting.dial->advance(self, clock_.now_ns())) {
    case Dial::Progress::Waits:
      return;
    case Dial::Progress::Failed:
      meeting.failure = meeting.dial->failure();
      return;
    case Dial::Progress::Met:
      break;
  }
  Dial::Won won = meeting.dial->take_won();
  Handshake& handshake = won.connection.handshake();
  meeting.way = won.to;
  meeting.connections[handshake.stream()] = Connection{won.connection.take_fd(), handshake.keys()};
  meeting.dial.reset();
  if (meeting.is_complete()) note_caller(process, meeting);
}

void Connector::begin_dial(const ProcessId& process, Meeting& meeting) {
  const auto missing = std::find_if(meeting.connections.begin(), meeting.connections.end(),
                                    [](const auto& connection) { return !connection.has_value(); });
  const auto stream = static_cast<uint8_t>(missing - meeting.connections.begin());
  meeting.dial.emplace(
      process, stream,
      meeting.way ? std::vector<Endpoint>{*meeting.way} : in_order(meeting.wanted->endpoints));
}

// Those in a network of this process's own first, in the order of its own interfaces.
std::vector<Endpoint> Connector::in_order(const std::vector<Endpoint>& theirs) const {
  const auto rank = [this](const Endpoint& endpoint) {
    const auto shared = std::find_if(
        interfaces_.begin(), interfaces_.end(),
        [&](const Interface& own) { return own.ip.shares_prefix(endpoint.ip, own.prefix_bits); });
    return shared - interfaces_.begin();
  };
  std::vector<Endpoint> order = theirs;
  std::stable_sort(order.begin(), order.end(), [&](const Endpoint& one, const Endpoint& other) {
    return rank(one) < rank(other);
  });
  return order;
}

}  // namespace rdmacoll::tcp
