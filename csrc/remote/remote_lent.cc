// Remote: memory that this process lends to others, and that it allocates there. Floor: remote.
// Thread: any.
#include <algorithm>
#include <utility>

#include "csrc/remote/fields.h"
#include "csrc/remote/remote.h"

namespace rdmacoll {

// An allocation of another process is an exposure without a name, which only that one knows of.
Result<std::string> Remote::answer_allocate(const SessionPtr& session, const TaggedFields& asked) {
  const auto number = number_of(asked, fields::kNumber);
  const auto bytes = number_of(asked, fields::kBytes);
  if (!number || !bytes || *bytes == 0) {
    return Status(StatusCode::InvalidArgument, "a request for memory has a number and a size");
  }
  const uint64_t lends = lends_bytes_.load();
  if (lends == 0) return std::string();
  const uint64_t lent = lent_.bytes();
  if (*bytes > lends - std::min(lends, lent)) {
    return Status(StatusCode::System,
                  "of the " + std::to_string(lends) + " bytes that it lends, others have " +
                      std::to_string(lent) + "; " + std::to_string(*bytes) + " more are not there");
  }
  auto memory = allocate(*bytes, Others::Write);
  if (!memory.ok()) return Status(StatusCode::System, memory.status().message());
  const auto exposure = std::make_shared<Exposure>(
      ExposureInfo{.name = "lent", .bytes = *bytes, .is_writable = true}, memory.take(), 0);
  auto told = describe(*exposure, session);
  if (!told.ok()) return told.status();
  const auto line = exposure->open(session, *number, std::nullopt);
  if (line) told.value()[fields::kLine] = std::to_string(*line);
  told.value()[fields::kGrant] =
      std::to_string(lent_.add(std::make_shared<Grant>(session, exposure)));
  return encode(told.value());
}

Result<OpenedPtr> Remote::allocate_there(const std::string& address, const std::string& who,
                                         uint64_t bytes, int64_t timeout_ms,
                                         const InterruptCheck& interrupt) {
  const Deadline deadline = Deadline::after_ms(context_.clock, timeout_ms);
  auto session = context_.sessions.meet(address, who, deadline, interrupt);
  if (!session.ok()) return session.status();
  const uint64_t number = next_number();
  auto told =
      ask_until(session.value(),
                {{fields::kDo, fields::kAllocate},
                 {fields::kNumber, std::to_string(number)},
                 {fields::kWho, who_asks()},
                 {fields::kBytes, std::to_string(std::max<uint64_t>(bytes, 1))}},
                deadline, interrupt, [](const std::string& reply) { return !reply.empty(); });
  if (!told.ok()) return Status(told.status().code(), who + ": " + told.status().message());
  if (told.value().empty()) {
    return Status(StatusCode::Timeout,
                  who + " has lent no memory within " + std::to_string(timeout_ms) + " ms");
  }
  auto fields = parse_tagged_fields(told.value());
  if (!fields.ok()) return fields.status();
  OpenedAs as{.number = number,
              .closing = {{fields::kDo, fields::kDone},
                          {fields::kGrant, field_of(fields.value(), fields::kGrant)}}};
  return make_opened(session.value(), who, "memory lent by " + who, fields.value(), std::move(as),
                     deadline);
}

}  // namespace rdmacoll
