// Session. Floor: engine/session. Thread: see session.h.
#include "csrc/engine/session/session.h"

#include <algorithm>
#include <bitset>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/engine/session/session_memory.h"

namespace rdmacoll {
namespace {

// Transfers that are moved at a time; others wait for these.
constexpr size_t kTransfersAtOnce = 16;
// A device that works ends what it is at in microseconds.
constexpr int64_t kLeaveFenceMs = 1000;

}  // namespace

uint64_t Session::own_bytes(const TransportInfo& info) {
  const bool is_staged = !info.shares_memory && !info.any_memory;
  return kSessionBytes + (is_staged ? Staging::kBytes : 0);
}

Session::Session(const Link& link, std::shared_ptr<const SharedSegment> own_memory,
                 const Clock& clock, std::string name, SessionLog log)
    : link_(link),
      own_memory_(std::move(own_memory)),
      clock_(clock),
      name_(std::move(name)),
      lines_taken_(kLines),
      log_(std::move(log)),
      port_(kMessages, link_, kSessionChannel),
      landings_(link.own_slab) {
  if (link.own_slab.bytes >= kSessionBytes + Staging::kBytes) {
    staging_ = Staging({link.own_slab.base + kSessionBytes, Staging::kBytes, link.own_slab.id});
  }
}

Line& Session::line_at(uint32_t line) const {
  RDMACOLL_CHECK(line < kLines);
  return *reinterpret_cast<Line*>(link_.own_slab.base + notification_offset(line));
}

std::string Session::name() const {
  const std::lock_guard lock(mutex_);
  return name_;
}

void Session::set_name(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (name_ == name) return;
  name_ = name;
  log_.renamed(name);
}

void Session::introduce(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (name_ != kUnnamed) return;
  name_ = name;
  log_.renamed(name);
}

Status Session::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Status Session::submit(RequestPtr request) {
  RDMACOLL_CHECK(request->text.size() <= kMessageTextMax);
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return failure_;
  std::string text = request->text;
  new_messages_.push_back({{.number = ++requests_}, std::move(text), std::move(request)});
  return Status();
}

Status Session::submit(std::unique_ptr<Transfer> transfer) {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return failure_;
  new_transfers_.push_back(std::move(transfer));
  return Status();
}

void Session::reply(uint32_t number, const Status& status, std::string text) {
  if (!status.ok()) text = status.message();
  text.resize(std::min(text.size(), kMessageTextMax));
  const MessageHead head{.number = number,
                         .kind = MessageHead::Kind::Reply,
                         .code = static_cast<uint8_t>(status.code())};
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) new_messages_.push_back({head, std::move(text), nullptr});
}

// Under the mutex.
void Session::say(MessageHead::Kind kind) {
  new_messages_.push_back({{.kind = kind}, "", nullptr});
}

bool Session::say_close() {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok() || has_work()) return false;
  say(MessageHead::Kind::Close);
  return true;
}

void Session::say_keep() {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) say(MessageHead::Kind::Keep);
}

void Session::close() {
  const std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = Status(StatusCode::Aborted, "nobody has used the session");
  shared_.is_closed.store(true, std::memory_order_release);
}

bool Session::is_busy() const {
  const std::lock_guard lock(mutex_);
  return has_work();
}

// Under the mutex.
bool Session::has_work() const {
  return shared_.is_driven.load() || !new_messages_.empty() || !new_transfers_.empty();
}

std::optional<uint32_t> Session::take_line(LineUse use) {
  const std::lock_guard lock(mutex_);
  const auto first = lines_taken_.begin() + (use == LineUse::Stop ? kNotificationLines : 0);
  const auto end = first + kNotificationLines;
  const auto free = std::find(first, end, false);
  if (free == end) return std::nullopt;
  *free = true;
  return static_cast<uint32_t>(free - lines_taken_.begin());
}

void Session::give_line_back(uint32_t line) {
  const std::lock_guard lock(mutex_);
  line_at(line).counter.store(0, std::memory_order_relaxed);
  lines_taken_[line] = false;
}

bool Session::advance(std::vector<Completion>& finished, std::vector<Asked>& asked) {
  bool moved = take_submissions();
  moved |= send();
  moved |= take_messages(finished, asked);
  moved |= move(finished);
  if (asked_for() == 0 && shared_.is_driven.load(std::memory_order_relaxed)) {
    shared_.is_driven.store(false);
  }
  return moved;
}

bool Session::take_submissions() {
  const std::lock_guard lock(mutex_);
  const bool are_any = !new_messages_.empty() || !new_transfers_.empty();
  if (are_any) shared_.is_driven.store(true);
  for (const Outgoing& message : new_messages_) {
    if (Request* const request = message.request.get()) {
      request->record = log_.add(request->kind, request->text.size());
    }
  }
  for (const auto& transfer : new_transfers_) {
    const Transfer::What what = transfer->what();
    transfer->record = log_.add(what.kind, what.bytes, transfer->asked_ns);
  }
  std::move(new_messages_.begin(), new_messages_.end(), std::back_inserter(outgoing_));
  std::move(new_transfers_.begin(), new_transfers_.end(), std::back_inserter(transfers_));
  new_messages_.clear();
  new_transfers_.clear();
  return are_any;
}

// At most as many as there is room for: what is told comes from outside.
size_t Session::messages_due() const {
  const auto taken = static_cast<uint16_t>(port_.taken());
  const auto due = static_cast<uint16_t>(shared_.told.load(std::memory_order_acquire) - taken);
  return due <= kMessages.depth ? due : 0;
}

bool Session::send() {
  bool moved = false;
  while (!outgoing_.empty() && port_.can_send()) {
    Outgoing& next = outgoing_.front();
    const uint64_t bytes = sizeof(MessageHead) + next.text.size();
    write_message(port_.outgoing(bytes), next.head, next.text);
    if (!port_.announce(bytes)) break;
    if (next.request != nullptr) {
      log_.start(next.request->record);
      awaited_.emplace(next.head.number, std::move(next.request));
    }
    outgoing_.pop_front();
    moved = true;
  }
  return moved;
}

// One that makes no sense is forgotten: its sender has a deadline.
bool Session::take_messages(std::vector<Completion>& finished, std::vector<Asked>& asked) {
  bool moved = false;
  while (const Line* line = port_.take()) {
    const uint64_t bytes = std::min<uint64_t>(line->length_and_sequence, kMessageBytesMax);
    auto message = read_message({port_.incoming(bytes), bytes});
    port_.consume();
    moved = true;
    if (!message) continue;
    if (message->head.kind != MessageHead::Kind::Reply) {
      asked.push_back({message->head.kind, message->head.number, std::move(message->text)});
      continue;
    }
    const auto found = awaited_.find(message->head.number);
    if (found == awaited_.end()) continue;  // it was not waited for any more
    Request& request = *found->second;
    const auto code = static_cast<StatusCode>(message->head.code);
    const Status answered = code == StatusCode::Ok ? Status() : Status(code, message->text);
    request.reply = std::move(message->text);
    finish(request, request.verdict ? request.verdict(answered, request.reply) : answered,
           finished);
    awaited_.erase(found);
  }
  return moved;
}

// Numbers in a line only grow, and the newest stands for all before: so they are told in the order
// in which the writes were asked for, although these go on side by side.
bool Session::move(std::vector<Completion>& finished) {
  bool moved = false;
  std::bitset<kLines> owed;
  for (size_t i = 0; i < std::min(transfers_.size(), kTransfersAtOnce);) {
    Transfer& transfer = *transfers_[i];
    const auto line = transfer.notifies();
    log_.start_with_last(transfer.record);
    const bool may_notify = !line || !owed.test(*line);
    const Transfer::State state =
        transfer.advance({link_, staging_, landings_, may_notify, i == 0});
    if (const auto still = transfer.notifies()) owed.set(*still);
    moved |= state != Transfer::State::Waits;
    if (state != Transfer::State::Ended) {
      ++i;
      continue;
    }
    end(transfer, finished);
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return moved;
}

void Session::end(Transfer& transfer, std::vector<Completion>& finished) {
  const bool is_judged = transfer.status().ok() && transfer.verdict != nullptr;
  const Status how = is_judged ? transfer.verdict() : transfer.status();
  if (!how.ok() || transfer.then == nullptr) return finish(transfer, how, finished);
  transfer.then->record = transfer.record;  // it is one thing to who waits for it
  const std::lock_guard lock(mutex_);
  std::string text = transfer.then->text;
  outgoing_.push_back({{.number = ++requests_}, std::move(text), std::move(transfer.then)});
}

// A transfer that the transport is at cannot end before it, whatever its deadline: it has the
// memory. Who waits for it has a timeout of his own.
void Session::check(std::vector<Completion>& finished, int64_t now_ns) {
  const auto late = [&](const std::string& what) {
    return Status(StatusCode::Timeout, "the " + what + " was not done by " + name() +
                                           " in time; its process may be stopped, or at work");
  };
  std::erase_if(awaited_, [&](const auto& awaited) {
    if (awaited.second->deadline_ns > now_ns) return false;
    finish(*awaited.second, late("request"), finished);
    return true;
  });
  std::erase_if(outgoing_, [&](const Outgoing& message) {
    if (message.request == nullptr || message.request->deadline_ns > now_ns) return false;
    finish(*message.request, late("request"), finished);
    return true;
  });
  std::erase_if(transfers_, [&](const auto& transfer) {
    if (transfer->deadline_ns > now_ns || transfer->is_under_way()) return false;
    finish(*transfer, late(transfer->describe()), finished);
    transfer->let_go({link_, staging_, landings_});
    return true;
  });
}

bool Session::has_ended(std::vector<Completion>& finished) {
  const Status ended = link_.transport->peer_status(link_.peer);
  if (ended.ok()) {
    if (!is_closed() || !outgoing_.empty() || take_submissions()) return false;
    log_.ended(Status());  // that is no failure
    fail(failure(), finished);
    return true;
  }
  if (is_under_way()) {
    // What a device has asked for may still come, into memory that its user is about to have back.
    // Where this cannot be ended nothing can: the device is lost, too.
    static_cast<void>(
        link_.transport->fence(link_.peer, Deadline::after_ms(clock_, kLeaveFenceMs)));
  }
  fail(Status(ended.code(), name() + " is gone: " + ended.message()), finished);
  return true;
}

bool Session::is_under_way() const {
  return std::any_of(transfers_.begin(), transfers_.end(),
                     [](const auto& transfer) { return transfer->is_under_way(); });
}

// A peer that is gone has ended what was under way: its tickets are done (transport.h).
void Session::fail(const Status& why, std::vector<Completion>& finished) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = why;
    log_.ended(why);  // before anybody is told
  }
  take_submissions();
  for (const auto& [number, request] : awaited_) finish(*request, why, finished);
  for (const Outgoing& message : outgoing_) {
    if (message.request != nullptr) finish(*message.request, why, finished);
  }
  for (const auto& transfer : transfers_) finish(*transfer, why, finished);
  awaited_.clear();
  outgoing_.clear();
  transfers_.clear();
}

}  // namespace rdmacoll
