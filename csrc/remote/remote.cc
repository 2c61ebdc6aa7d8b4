// Remote: what this process exposes. remote_opened.cc has what it opens of others.
// Floor: remote. Thread: any.
#include "csrc/remote/remote.h"

#include <unistd.h>

#include <utility>

#include "csrc/base/host_name.h"
#include "csrc/base/printable.h"
#include "csrc/remote/fields.h"
#include "csrc/remote/statement.h"

namespace rdmacoll {
Remote::Remote(RemoteContext context) : context_(std::move(context)) {
  context_.sessions.answer_by(this);
}

Remote::~Remote() { context_.sessions.answer_by(nullptr); }

int64_t Remote::deadline_ns(int64_t timeout_ms) const {
  return context_.clock.now_ns() + timeout_ms * 1'000'000;
}

Result<RemoteMemoryPtr> Remote::allocate(uint64_t bytes, Others others) {
  return RemoteMemory::make({context_.transports, context_.sessions, memories_, context_.keeps},
                            bytes, others);
}

Status Remote::expose(ExposureInfo info, RemoteMemoryPtr memory, uint64_t offset) {
  if (info.name.empty() || info.name.size() > kNameBytesMax) {
    return Status(StatusCode::InvalidArgument,
                  "name='" + printable(info.name) + "' has " + std::to_string(info.name.size()) +
                      " bytes; a name has 1 to " + std::to_string(kNameBytesMax));
  }
  if (info.meta.size() > kMetaBytesMax) {
    return Status(StatusCode::InvalidArgument,
                  "the description of '" + info.name + "' has " + std::to_string(info.meta.size()) +
                      " bytes, where " + std::to_string(kMetaBytesMax) + " are possible");
  }
  const uint64_t bytes = info.memory_bytes();
  if (!memory->holds(offset, bytes)) {
    return Status(StatusCode::InvalidArgument,
                  "'" + info.name + "' would have " + std::to_string(bytes) + " bytes from byte " +
                      std::to_string(offset) + " on of a memory that has " +
                      std::to_string(memory->bytes()));
  }
  if (info.is_writable && memory->others() == Others::OnlyRead) {
    return Status(StatusCode::InvalidArgument,
                  "'" + info.name +
                      "' lies in memory that others can only read; make it with access=\"rw\", or "
                      "expose it with access=\"r\"");
  }
  const std::lock_guard lock(mutex_);
  if (exposures_.contains(info.name)) {
    return Status(StatusCode::InvalidArgument,
                  "name='" + info.name + "' is exposed already; revoke that first, or use another");
  }
  const std::string name = info.name;
  exposures_.emplace(name, std::make_shared<Exposure>(std::move(info), std::move(memory), offset));
  return Status();
}

Status Remote::not_exposed(const std::string& name) {
  return Status(StatusCode::InvalidArgument,
                "this process exposes nothing under name='" + name + "'");
}

std::shared_ptr<Exposure> Remote::exposure(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = exposures_.find(name);
  return found == exposures_.end() ? nullptr : found->second;
}

Result<uint64_t> Remote::notified(const std::string& name) const {
  const auto known = exposure(name);
  return known == nullptr ? Result<uint64_t>(not_exposed(name)) : known->notified();
}

Result<WorkPtr> Remote::wait_notified(const std::string& name, uint64_t at_least,
                                      int64_t timeout_ms) {
  const auto known = exposure(name);
  if (known == nullptr) return not_exposed(name);
  auto work = std::make_shared<Work>();
  context_.sessions.submit({.work = work,
                            .deadline_ns = deadline_ns(timeout_ms),
                            .is_true = [known, at_least] { return known->notified() >= at_least; },
                            .what = "nobody has notified '" + name + "' of " +
                                    std::to_string(at_least) + " or more within " +
                                    std::to_string(timeout_ms) + " ms",
                            .kind = FlightKind::WaitNotify});
  return work;
}

WorkPtr Remote::watch(std::function<bool()> is_true, std::string what, int64_t timeout_ms) {
  auto work = std::make_shared<Work>();
  context_.sessions.submit({.work = work,
                            .deadline_ns = deadline_ns(timeout_ms),
                            .is_true = std::move(is_true),
                            .what = std::move(what),
                            .kind = FlightKind::None});
  return work;
}

std::string Remote::who_asks() {
  return "process " + std::to_string(::getpid()) + " of " + host_name();
}

RemoteStats Remote::stats() const {
  const std::lock_guard lock(mutex_);
  RemoteStats stats;
  stats.memory_bytes = memories_->bytes();
  stats.exposures = exposures_.size();
  for (const auto& [name, exposure] : exposures_) stats.openings += exposure->openings().size();
  stats.opened = opened_.size();
  stats.lent_bytes = lent_.bytes();
  stats.posted = posted_.count();
  stats.sessions = context_.sessions.count();
  return stats;
}

// --- what others ask -----------------------------------------------------------------------------

namespace {

Status makes_no_sense() {
  return Status(StatusCode::InvalidArgument,
                "the request makes no sense; install the same rdmacoll on both sides");
}

}  // namespace

Result<std::string> Remote::answer(const SessionPtr& session, const std::string& text) {
  auto asked = parse_tagged_fields(text);
  if (!asked.ok()) return asked.status();
  const std::string& who = field_of(asked.value(), fields::kWho);
  if (!who.empty()) session->introduce(printable(who));
  const std::string& what = field_of(asked.value(), fields::kDo);
  if (what == fields::kFence) return std::string();
  if (what == fields::kOpen) return answer_open(session, asked.value());
  if (what == fields::kClose) return answer_close(session, asked.value());
  if (what == fields::kRevoke) return answer_revoke(session, asked.value());
  if (what == fields::kForget) return answer_forget(session, asked.value());
  if (what == fields::kAllocate) return answer_allocate(session, asked.value());
  if (what == fields::kUpdate) return answer_update(session, asked.value());
  if (what == fields::kPost) return answer_post(session, asked.value());
  if (what == fields::kFree || what == fields::kTaken || what == fields::kRefused ||
      what == fields::kUnpost) {
    return answer_ended(session, asked.value());
  }
  return makes_no_sense();
}

Result<std::string> Remote::answer_open(const SessionPtr& session, const TaggedFields& asked) {
  const auto number = number_of(asked, fields::kNumber);
  if (!number) return makes_no_sense();
  const auto known = exposure(field_of(asked, fields::kName));
  // Not an error: it may be exposed soon, and who opens it has a deadline.
  if (known == nullptr) return std::string();
  auto told = describe(*known, session);
  if (!told.ok()) return told.status();
  if (told.value().empty()) return std::string();
  std::optional<uint32_t> stop_line;
  if (const auto given = number_of(asked, fields::kStopLine)) {
    if (*given < kNotificationLines || *given >= kLines) return makes_no_sense();
    stop_line = static_cast<uint32_t>(*given);
  }
  const auto line = known->open(session, *number, stop_line);
  if (line) told.value()[fields::kLine] = std::to_string(*line);
  return encode(told.value());
}

Result<TaggedFields> Remote::describe(const Exposure& exposure, const SessionPtr& session) const {
  auto key = exposure.memory->offer(session);
  if (!key.ok()) return key.status();
  if (key.value().empty()) return TaggedFields{};
  const ExposureInfo& info = exposure.info;
  return TaggedFields{{fields::kKey, key.take()},
                      {fields::kOffset, std::to_string(exposure.offset)},
                      {fields::kBytes, std::to_string(info.bytes)},
                      {fields::kWritable, info.is_writable ? "1" : ""},
                      {fields::kVersions, info.has_versions ? "1" : ""},
                      {fields::kMeta, info.meta}};
}

Result<std::string> Remote::answer_close(const SessionPtr& session, const TaggedFields& asked) {
  const auto number = number_of(asked, fields::kNumber);
  if (!number) return makes_no_sense();
  const std::lock_guard lock(mutex_);
  for (const auto& [name, exposure] : exposures_) exposure->close(session, number);
  return std::string();
}

void Remote::note_end(const SessionPtr& session) {
  lent_.drop(session);
  posted_.drop(session);
  mailboxes_.drop(session, std::nullopt);
  const std::lock_guard lock(mutex_);
  for (const auto& [name, exposure] : exposures_) exposure->close(session, std::nullopt);
  memories_->forget(session);
  std::erase_if(open_memories_,
                [&](const auto& open) { return open.first.first == session.get(); });
}

}  // namespace rdmacoll
