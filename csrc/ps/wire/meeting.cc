// meeting. Floor: ps/wire. Thread: any.
#include "csrc/ps/wire/meeting.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/engine/connect/tagged_fields.h"
#include "csrc/remote/fields.h"

namespace rdmacoll::ps {
namespace {

constexpr const char* kCalls = "rdmacoll.ps.calls";  // the mailbox
constexpr const char* kAddress = "address";
constexpr const char* kName = "name";  // of both rings
constexpr const char* kServer = "server";
constexpr const char* kWorker = "worker";
constexpr const char* kLoan = "loan";  // which a call has not
constexpr int64_t kReadMs = 10'000;
// A loan is exposed before the letter is written. Others who call wait meanwhile.
constexpr int64_t kLentMs = 1'000;

std::string new_name() {
  std::random_device random;
  const uint64_t number = (uint64_t{random()} << 32) | random();
  return "rdmacoll.ps.ring." + std::to_string(number);
}

Result<WorkPtr> post_letter(const Meeting& meeting, const std::string& address,
                            const std::string& who, const TaggedFields& what) {
  const std::string text = rdmacoll::encode(what);
  auto letter = meeting.remote.allocate(text.size(), Others::OnlyRead);
  if (!letter.ok()) return letter.status();
  std::memcpy(letter.value()->data(), text.data(), text.size());
  return meeting.remote.post(address, who, kCalls, {letter.value(), 0, text.size()},
                             meeting.timeout_ms, meeting.interrupt);
}

// What was posted, of a process that may say anything.
Result<std::string> read_letter(const Meeting& meeting, const OpenedPtr& letter) {
  if (letter->info.bytes > kMaxTaggedFieldsBytes) {
    return Status(StatusCode::InvalidArgument, "a call is no longer than that");
  }
  std::string text(letter->info.bytes, '\0');
  const WorkPtr read = meeting.remote.read(letter, 0, text.data(), text.size(), kReadMs);
  RDMACOLL_RETURN_IF_ERROR(meeting.remote.wait(*read, -1, meeting.interrupt));
  return text;
}

Result<Heard> hear_caller(const Meeting& meeting, const TaggedFields& told,
                          const std::string& who) {
  const std::string& ring = field_of(told, kName);
  const auto server = number_of(told, kServer);
  if (!server || *server > kNoServer) {
    return Status(StatusCode::InvalidArgument, who + " has called with what makes no sense");
  }
  auto connection = RingConnection::make(meeting.remote, ring);
  if (!connection.ok()) return connection.status();
  RDMACOLL_RETURN_IF_ERROR(connection.value()->open(field_of(told, kAddress), who, ring,
                                                    meeting.timeout_ms, meeting.interrupt));
  return Heard{.connection = connection.take(), .from = static_cast<ServerId>(*server)};
}

Result<Heard> hear_lender(const Meeting& meeting, const TaggedFields& told,
                          const OpenedPtr& letter) {
  const std::string& who = letter->who;
  const auto worker = number_of(told, kWorker);
  const auto loan = number_of(told, kLoan);
  if (!worker || *loan == 0 || *loan > UINT32_MAX) {
    return Status(StatusCode::InvalidArgument, who + " lends what makes no sense");
  }
  auto opened = meeting.remote.open(field_of(told, kAddress), who, field_of(told, kName),
                                    std::min(kLentMs, meeting.timeout_ms), meeting.interrupt);
  if (!opened.ok()) return opened.status();
  return Heard{.lent = opened.take(),
               .letter = letter,
               .worker = *worker,
               .loan = static_cast<uint32_t>(*loan)};
}

}  // namespace

Result<MailboxPtr> begin_to_hear(Remote& remote) {
  RDMACOLL_RETURN_IF_ERROR(remote.open_mailbox(kCalls));
  return remote.mailbox(kCalls);
}

Result<std::shared_ptr<RingConnection>> call_server(const Meeting& meeting, const Caller& caller,
                                                    const std::string& address,
                                                    const std::string& who) {
  const Deadline deadline = Deadline::after_ms(SteadyClock(), meeting.timeout_ms);
  const std::string ring = new_name();
  auto connection = RingConnection::make(meeting.remote, ring);
  if (!connection.ok()) return connection.status();
  auto posted = post_letter(
      meeting, address, who,
      {{kAddress, caller.address}, {kName, ring}, {kServer, std::to_string(caller.server)}});
  if (!posted.ok()) return posted.status();
  RDMACOLL_RETURN_IF_ERROR(meeting.remote.wait(*posted.value(), -1, meeting.interrupt));
  RDMACOLL_RETURN_IF_ERROR(connection.value()->open(
      address, who, ring, deadline.left_ms(SteadyClock()), meeting.interrupt));
  return std::shared_ptr<RingConnection>(connection.take());
}

Result<WorkPtr> lend_to_server(const Meeting& meeting, const Lending& lending,
                               const std::string& address, const std::string& who) {
  return post_letter(meeting, address, who,
                     {{kAddress, lending.address},
                      {kName, lending.name},
                      {kWorker, std::to_string(lending.worker)},
                      {kLoan, std::to_string(lending.loan)}});
}

Result<Heard> hear_call(const Meeting& meeting) {
  auto letter = meeting.remote.take(kCalls, 0, meeting.interrupt);
  if (!letter.ok()) return letter.status();
  auto text = read_letter(meeting, letter.value());
  const std::string who = letter.value()->who;
  auto told = text.ok() ? parse_tagged_fields(text.value()) : text.status();
  if (told.ok() && number_of(told.value(), kLoan)) {
    return hear_lender(meeting, told.value(), letter.value());
  }
  meeting.remote.close(letter.value());
  if (!told.ok()) return told.status();
  return hear_caller(meeting, told.value(), who);
}

}  // namespace rdmacoll::ps
