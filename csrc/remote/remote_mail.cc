// Remote: mailboxes, and what this process posts to those of others. A letter says where a tensor
// lies; who takes it reads the tensor from there, and says when it has. Floor: remote. Thread: any.
#include <utility>

#include "csrc/base/printable.h"
#include "csrc/remote/fields.h"
#include "csrc/remote/remote.h"

namespace rdmacoll {
namespace {

// What is replied to a letter that cannot be put into its mailbox now.
constexpr const char* kNoMailbox = "has no such mailbox";
constexpr const char* kIsFull = "has a full mailbox there, from which nobody takes";

Status no_mailbox(const std::string& name) {
  return Status(StatusCode::InvalidArgument, "this process has no mailbox of name='" + name + "'");
}

}  // namespace

Status Remote::open_mailbox(const std::string& name) {
  if (name.empty() || name.size() > kNameBytesMax) {
    return Status(StatusCode::InvalidArgument,
                  "name='" + printable(name) + "' has " + std::to_string(name.size()) +
                      " bytes; a name has 1 to " + std::to_string(kNameBytesMax));
  }
  if (mailboxes_.add(name) != nullptr) return Status();
  return Status(StatusCode::InvalidArgument, "this process has a mailbox of name='" + name +
                                                 "' already; close it, or use another");
}

Status Remote::close_mailbox(const std::string& name) {
  const MailboxPtr closed = mailboxes_.remove(name);
  if (closed == nullptr) return no_mailbox(name);
  while (const auto letter = closed->take()) refuse(*letter);
  return Status();
}

void Remote::refuse(const Letter& letter) {
  tell_closed(*letter.from,
              {{fields::kDo, fields::kRefused}, {fields::kNumber, std::to_string(letter.number)}});
}

Result<std::string> Remote::answer_post(const SessionPtr& session, const TaggedFields& asked) {
  const auto number = number_of(asked, fields::kNumber);
  if (!number) return Status(StatusCode::InvalidArgument, "a letter has a number");
  const MailboxPtr box = mailboxes_.find(field_of(asked, fields::kName));
  if (box == nullptr) return std::string(kNoMailbox);
  return std::string(box->add({session, *number, asked}) ? "" : kIsFull);
}

Result<OpenedPtr> Remote::take(const std::string& name, int64_t timeout_ms,
                               const InterruptCheck& interrupt) {
  const MailboxPtr box = mailboxes_.find(name);
  if (box == nullptr) return no_mailbox(name);
  const Deadline deadline = Deadline::after_ms(context_.clock, timeout_ms);
  while (true) {
    if (auto letter = box->take()) {
      const std::string who = letter->from->name();
      OpenedAs as{.number = next_number(),
                  .closing = {{fields::kDo, fields::kTaken},
                              {fields::kNumber, std::to_string(letter->number)}}};
      auto opened = make_opened(letter->from, who, name, letter->told, std::move(as), deadline);
      if (opened.ok()) return opened;
      // Of a sender that has ended meanwhile nobody waits for it; it is as if it had not posted.
      if (!letter->from->failure().ok()) continue;
      if (opened.status().code() == StatusCode::Timeout) {
        box->put_back(*std::move(letter));
      } else {
        refuse(*letter);
      }
      return opened;
    }
    auto work = std::make_shared<Work>();
    context_.sessions.submit(
        {.work = work,
         .deadline_ns = deadline.at_ns,
         .is_true = [box] { return !box->is_empty(); },
         .what = "nobody has posted to '" + name + "' within " + std::to_string(timeout_ms) + " ms",
         .kind = FlightKind::Take});
    RDMACOLL_RETURN_IF_ERROR(wait(*work, -1, interrupt));
  }
}

Result<WorkPtr> Remote::post(const std::string& address, const std::string& who,
                             const std::string& name, Parcel parcel, int64_t timeout_ms,
                             const InterruptCheck& interrupt) {
  if (!parcel.memory->holds(parcel.offset, parcel.bytes) || parcel.meta.size() > kMetaBytesMax) {
    return Status(StatusCode::InvalidArgument, "what is posted is not of its memory");
  }
  const Deadline deadline = Deadline::after_ms(context_.clock, timeout_ms);
  auto session = context_.sessions.meet(address, who, deadline, interrupt);
  if (!session.ok()) return session.status();
  const auto exposure = std::make_shared<Exposure>(
      ExposureInfo{.name = name, .bytes = parcel.bytes, .meta = std::move(parcel.meta)},
      std::move(parcel.memory), parcel.offset);
  auto told = describe(*exposure, session.value());
  if (!told.ok()) return told.status();
  const auto grant = std::make_shared<Grant>(session.value(), exposure);
  const uint64_t number = next_number();
  posted_.add(number, grant);
  told.value()[fields::kDo] = fields::kPost;
  told.value()[fields::kName] = name;
  told.value()[fields::kWho] = who_asks();
  told.value()[fields::kNumber] = std::to_string(number);
  auto reply = ask_until(session.value(), told.value(), deadline, interrupt,
                         [](const std::string& text) { return text.empty(); });
  if (!reply.ok() || !reply.value().empty()) {
    posted_.end(session.value(), number, Grant::State::Refused);
    // It may come into the mailbox all the same, only later.
    tell_closed(*session.value(),
                {{fields::kDo, fields::kUnpost}, {fields::kNumber, std::to_string(number)}});
    if (!reply.ok()) return reply.status();
    return Status(StatusCode::Timeout, who + " " + reply.value() + ": '" + name + "', after " +
                                           std::to_string(timeout_ms) + " ms");
  }
  auto work = std::make_shared<Work>();
  context_.sessions.submit(
      {.work = work,
       .deadline_ns = deadline.at_ns,
       .is_true =
           [grant] { return grant->state != Grant::State::Held || !grant->to->failure().ok(); },
       .what = who + " has not taken what was posted to '" + name + "' within " +
               std::to_string(timeout_ms) + " ms; it may still do so",
       .verdict =
           [grant, who, name] {
             if (grant->state == Grant::State::Held) return grant->to->failure();
             if (grant->state == Grant::State::Done) return Status();
             return Status(StatusCode::Aborted, who + " has closed '" + name +
                                                    "' and has not taken what was posted to it");
           },
       .kind = FlightKind::WaitTaken});
  return work;
}

// What the process has given to the other, or that to it.
Result<std::string> Remote::answer_ended(const SessionPtr& session, const TaggedFields& asked) {
  const auto number = number_of(asked, fields::kNumber);
  if (!number) return Status(StatusCode::InvalidArgument, "what has ended has a number");
  const std::string& what = field_of(asked, fields::kDo);
  if (what == fields::kFree) lent_.end(session, *number, Grant::State::Done);
  if (what == fields::kTaken) posted_.end(session, *number, Grant::State::Done);
  if (what == fields::kRefused) posted_.end(session, *number, Grant::State::Refused);
  if (what == fields::kUnpost) mailboxes_.drop(session, *number);
  return std::string();
}

}  // namespace rdmacoll
