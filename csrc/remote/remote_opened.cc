// Remote: what this process opens of others, reads and writes there. Floor: remote. Thread: any.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/base/check.h"
#include "csrc/engine/session/fence.h"
#include "csrc/engine/session/read_write.h"
#include "csrc/remote/fields.h"
#include "csrc/remote/refusals.h"
#include "csrc/remote/remote.h"

namespace rdmacoll {
namespace {

// How soon one asks again for what is not exposed yet.
constexpr std::chrono::milliseconds kLookAgain{2};

}  // namespace

Status Remote::wait(Work& work, int64_t timeout_ms, const InterruptCheck& interrupt) {
  Work* const works[] = {&work};
  RDMACOLL_RETURN_IF_ERROR(context_.progress.wait(works, timeout_ms, interrupt));
  return work.status();
}

RequestPtr Remote::request(const TaggedFields& what, int64_t timeout_ms) const {
  auto made = std::make_shared<Request>();
  made->work = std::make_shared<Work>();
  made->text = encode(what);
  made->kind = request_kind(field_of(what, fields::kDo));
  made->deadline_ns = deadline_ns(timeout_ms);
  return made;
}

Result<std::string> Remote::ask(const SessionPtr& session, const TaggedFields& what,
                                int64_t timeout_ms, const InterruptCheck& interrupt,
                                bool is_again) {
  const RequestPtr made = request(what, timeout_ms);
  if (is_again) made->kind = FlightKind::None;
  RDMACOLL_RETURN_IF_ERROR(context_.sessions.submit(*session, made));
  RDMACOLL_RETURN_IF_ERROR(wait(*made->work, -1, interrupt));
  return made->reply;
}

Result<std::string> Remote::ask_until(const SessionPtr& session, const TaggedFields& what,
                                      Deadline deadline, const InterruptCheck& interrupt,
                                      const std::function<bool(const std::string&)>& enough) {
  std::optional<std::string> last;
  std::optional<FlightWaitGuard> noted;  // once more than one question is needed
  while (true) {
    const int64_t left_ms = std::max<int64_t>(deadline.left_ms(context_.clock), 1);
    auto reply = ask(session, what, left_ms, interrupt, noted.has_value());
    if (reply.status().code() == StatusCode::Timeout && last) return *last;
    if (!reply.ok() || enough(reply.value()) || deadline.passed(context_.clock)) return reply;
    if (interrupt) RDMACOLL_RETURN_IF_ERROR(interrupt());
    last = reply.take();
    if (!noted) {
      noted.emplace(
          context_.sessions.note_wait(*session, request_kind(field_of(what, fields::kDo))));
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

uint64_t Remote::next_number() {
  const std::lock_guard lock(mutex_);
  return ++numbers_;
}

Result<OpenedPtr> Remote::open(const std::string& address, const std::string& who,
                               const std::string& name, int64_t timeout_ms,
                               const InterruptCheck& interrupt) {
  const Deadline deadline = Deadline::after_ms(context_.clock, timeout_ms);
  auto session = context_.sessions.meet(address, who, deadline, interrupt);
  if (!session.ok()) return session.status();
  OpenedAs as{.number = next_number(),
              .stop_line = session.value()->take_line(Session::LineUse::Stop)};
  TaggedFields asks{{fields::kDo, fields::kOpen},
                    {fields::kName, name},
                    {fields::kWho, who_asks()},
                    {fields::kNumber, std::to_string(as.number)}};
  if (as.stop_line) asks[fields::kStopLine] = std::to_string(*as.stop_line);
  as.closing = {{fields::kDo, fields::kClose}, {fields::kNumber, std::to_string(as.number)}};
  auto told = ask_until(session.value(), asks, deadline, interrupt,
                        [](const std::string& reply) { return !reply.empty(); });
  auto opened = [&]() -> Result<OpenedPtr> {
    const std::string nothing_exposed = who + " has exposed nothing under name='" + name +
                                        "' within " + std::to_string(timeout_ms) + " ms";
    if (told.status().code() == StatusCode::Timeout) {
      return Status(StatusCode::Timeout, nothing_exposed + ": " + told.status().message());
    }
    if (!told.ok()) return told.status();
    if (told.value().empty()) return Status(StatusCode::Timeout, nothing_exposed);
    auto fields = parse_tagged_fields(told.value());
    if (!fields.ok()) return bad_reply(who);
    return make_opened(session.value(), who, name, fields.value(), as, deadline);
  }();
  if (!opened.ok()) {
    // It may be opened there all the same, only later.
    tell_closed(*session.value(), as.closing);
    if (as.stop_line) session.value()->give_line_back(*as.stop_line);
  }
  return opened;
}

Result<OpenedPtr> Remote::make_opened(const SessionPtr& session, const std::string& who,
                                      const std::string& name, const TaggedFields& told,
                                      OpenedAs as, Deadline deadline) {
  const auto offset = number_of(told, fields::kOffset);
  const auto bytes = number_of(told, fields::kBytes);
  if (!offset || !bytes || *bytes > (uint64_t{1} << 56)) return bad_reply(who);
  auto memory = open_memory(session, field_of(told, fields::kKey), deadline);
  if (!memory.ok()) return memory.status();
  ExposureInfo info{.name = name,
                    .bytes = *bytes,
                    .is_writable = !field_of(told, fields::kWritable).empty(),
                    .has_versions = !field_of(told, fields::kVersions).empty(),
                    .meta = field_of(told, fields::kMeta)};
  as.offset = *offset;
  if (const auto given = number_of(told, fields::kLine)) {
    if (*given >= kNotificationLines) return bad_reply(who);
    as.line = static_cast<uint32_t>(*given);
  }
  if (!memory.value()->region.holds(*offset, info.memory_bytes())) return bad_reply(who);
  const uint64_t number = as.number;
  auto opened =
      std::make_shared<Opened>(session, memory.value(), who, std::move(info), std::move(as));
  const std::lock_guard lock(mutex_);
  opened_.emplace(number, opened);
  return opened;
}

// Memory that is opened stays open until its owner says to forget it, or the session ends: it
// serves all that this process opens there.
Result<OpenMemoryPtr> Remote::open_memory(const SessionPtr& session, const std::string& key,
                                          Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = open_memories_.find({session.get(), key});
    if (known != open_memories_.end()) return known->second;
  }
  const Link& link = session->link();
  auto region = link.transport->open_region(link.peer, key, deadline);
  if (!region.ok()) return region.status();
  const std::lock_guard lock(mutex_);
  OpenMemoryPtr& memory = open_memories_[{session.get(), key}];
  if (memory == nullptr) memory = std::make_shared<OpenMemory>(link, region.value());
  return memory;
}

void Remote::close(const OpenedPtr& opened) {
  {
    const std::lock_guard lock(mutex_);
    opened_.erase(opened->as.number);
  }
  tell_closed(*opened->session, opened->as.closing);
}

// Where it cannot be told the other has ended. Nobody waits for the answer.
void Remote::tell_closed(Session& session, const TaggedFields& closing) {
  constexpr int64_t kToldMs = 10'000;
  static_cast<void>(context_.sessions.submit(session, request(closing, kToldMs)));
}

// --- what its owner asks -------------------------------------------------------------------------

// Aborted: something is under way there still; ask again.
Result<std::string> Remote::answer_revoke(const SessionPtr& session, const TaggedFields& asked) {
  const auto number = number_of(asked, fields::kNumber);
  if (!number) return Status(StatusCode::InvalidArgument, "a revocation has a number");
  const std::lock_guard lock(mutex_);
  const auto found = opened_.find(*number);
  if (found == opened_.end() || found->second->session != session) return std::string();
  found->second->revoke();
  if (!found->second->is_used()) return std::string();
  return Status(StatusCode::Aborted, "it still reads or writes there");
}

Result<std::string> Remote::answer_forget(const SessionPtr& session, const TaggedFields& asked) {
  const std::lock_guard lock(mutex_);
  open_memories_.erase({session.get(), field_of(asked, fields::kKey)});
  return std::string();
}

// --- reading and writing -------------------------------------------------------------------------

namespace {

// The counter is the newest then; 0: none is taken.
Status take_notification(Opened& opened, uint64_t counter) {
  if (counter == 0) return Status();
  if (!opened.as.line) {
    return Status(StatusCode::Unsupported,
                  opened.who + " takes notifications of " + std::to_string(kNotificationLines) +
                      " openings of this process at a time, and others have them all; close some");
  }
  if (opened.take_notification(counter)) return Status();
  return Status(StatusCode::InvalidArgument, "notify=" + std::to_string(counter) +
                                                 " is not larger than what '" + opened.info.name +
                                                 "' was notified of before; count up");
}

// bytes: of the memory of this process that they are in. there: how many there are in the other's.
Status check_ranges(const Opened& opened, uint64_t there, uint64_t bytes,
                    const std::vector<MovedRange>& ranges) {
  for (const MovedRange& range : ranges) {
    if (range.theirs > there || range.bytes > there - range.theirs) {
      return out_of_range(opened, range.theirs, range.bytes);
    }
    if (range.bytes == 0 || range.mine > bytes || range.bytes > bytes - range.mine) {
      return Status(StatusCode::InvalidArgument,
                    std::to_string(range.bytes) + " bytes do not fit at byte " +
                        std::to_string(range.mine) + " of " + std::to_string(bytes));
    }
  }
  return Status();
}

}  // namespace

// Without a region: the transport reads any memory, or it is staged.
Remote::Mine Remote::local(const Region& theirs, const void* data, uint64_t bytes) const {
  // put() only reads it.
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(data));
  Mine mine{.slice = {begin, bytes, kNoRegion}};
  if (theirs.base != nullptr || bytes == 0) return mine;
  if (const Heap* heap = context_.transports.heap()) {
    if (const auto part = heap->part_of(begin, bytes)) mine.slice.region = part->region;
  }
  if (mine.slice.region == kNoRegion) {
    RemoteMemories::Local known = memories_->local(data, bytes);
    mine.slice.region = known.region;
    mine.in_use = std::move(known.in_use);
  }
  return mine;
}

// The transfer holds what it moves between, until it has ended.
template <typename Make>
WorkPtr Remote::start(const OpenedPtr& opened, const void* data, uint64_t bytes, int64_t timeout_ms,
                      Make make) {
  const auto use = opened->use();
  if (use == nullptr || !opened->session->failure().ok()) return ended(opened->why_not());
  Mine mine = local(use->memory->region, data, bytes);
  use->mine = std::move(mine.in_use);
  return submit(opened, use, make(mine.slice, use->memory->region), timeout_ms);
}

WorkPtr Remote::submit(const OpenedPtr& opened, std::shared_ptr<Opened::Use> use,
                       std::unique_ptr<Transfer> transfer, int64_t timeout_ms) {
  auto work = std::make_shared<Work>();
  transfer->work = work;
  if (transfer->then != nullptr) transfer->then->work = work;
  transfer->asked_ns = context_.clock.now_ns();
  transfer->deadline_ns = transfer->asked_ns + timeout_ms * 1'000'000;
  transfer->verdict = [opened, use = std::move(use)] { return opened->failure(); };
  const Status submitted = context_.sessions.submit(*opened->session, std::move(transfer));
  return submitted.ok() ? work : ended(submitted);
}

WorkPtr Remote::read(const OpenedPtr& opened, uint64_t offset, void* data, uint64_t bytes,
                     int64_t timeout_ms) {
  if (!holds(*opened, offset, bytes)) return ended(out_of_range(*opened, offset, bytes));
  return start(opened, data, bytes, timeout_ms, [&](LocalSlice mine, const Region& theirs) {
    return std::make_unique<Read>(mine, theirs, opened->as.offset + offset);
  });
}

WorkPtr Remote::read(const OpenedPtr& opened, void* data, uint64_t bytes,
                     std::vector<MovedRange> ranges, int64_t timeout_ms) {
  if (const Status bad = check_ranges(*opened, opened->info.bytes, bytes, ranges); !bad.ok())
    return ended(bad);
  return start(opened, data, bytes, timeout_ms, [&](LocalSlice mine, const Region& theirs) {
    return std::make_unique<Read>(mine, theirs, opened->as.offset, std::move(ranges));
  });
}

WorkPtr Remote::write(const OpenedPtr& opened, uint64_t offset, const void* data, uint64_t bytes,
                      uint64_t notify, int64_t timeout_ms) {
  if (!holds(*opened, offset, bytes)) return ended(out_of_range(*opened, offset, bytes));
  if (const Status bad = check_writable(*opened); !bad.ok()) return ended(bad);
  if (const Status bad = take_notification(*opened, notify); !bad.ok()) return ended(bad);
  const Write::Notification notification{opened->as.line.value_or(0), notify};
  return start(opened, data, bytes, timeout_ms, [&](LocalSlice mine, const Region& theirs) {
    return std::make_unique<Write>(mine, theirs, opened->as.offset + offset, notification);
  });
}

WorkPtr Remote::write(const OpenedPtr& opened, const void* data, uint64_t bytes,
                      std::vector<MovedRange> ranges, uint64_t notify, int64_t timeout_ms) {
  if (const Status bad = check_ranges(*opened, opened->info.bytes, bytes, ranges); !bad.ok())
    return ended(bad);
  if (const Status bad = check_writable(*opened); !bad.ok()) return ended(bad);
  if (const Status bad = take_notification(*opened, notify); !bad.ok()) return ended(bad);
  const Write::Notification notification{opened->as.line.value_or(0), notify};
  return start(opened, data, bytes, timeout_ms, [&](LocalSlice mine, const Region& theirs) {
    return std::make_unique<Write>(mine, theirs, opened->as.offset, std::move(ranges),
                                   notification);
  });
}

WorkPtr Remote::snapshot(const OpenedPtr& opened, void* data, uint64_t bytes,
                         std::vector<MovedRange> parts, uint64_t newer_than,
                         std::shared_ptr<uint64_t> version, int64_t timeout_ms) {
  if (!opened->info.has_versions) {
    return ended(Status(StatusCode::InvalidArgument,
                        "'" + opened->info.name + "' of " + opened->who + " has no versions"));
  }
  return begin_snapshot(opened, {0, opened->info.bytes}, {data, bytes, std::move(parts)},
                        newer_than, std::move(version), timeout_ms);
}

WorkPtr Remote::snapshot(const OpenedPtr& opened, VersionsAt at, SnapshotInto into,
                         std::shared_ptr<uint64_t> version, int64_t timeout_ms) {
  const uint64_t bytes = versions_bytes(at.bytes);
  if (!holds(*opened, at.offset, bytes)) return ended(out_of_range(*opened, at.offset, bytes));
  if (at.offset % kLineBytes != 0) {
    return ended(Status(StatusCode::InvalidArgument,
                        "versions lie at a multiple of " + std::to_string(kLineBytes) +
                            " bytes, not at " + std::to_string(at.offset)));
  }
  return begin_snapshot(opened, at, std::move(into), 0, std::move(version), timeout_ms);
}

WorkPtr Remote::begin_snapshot(const OpenedPtr& opened, VersionsAt at, SnapshotInto into,
                               uint64_t newer_than, std::shared_ptr<uint64_t> version,
                               int64_t timeout_ms) {
  if (const Status bad = check_ranges(*opened, at.bytes, into.bytes, into.parts); !bad.ok())
    return ended(bad);
  const auto make = [&](LocalSlice mine, const Region& theirs) {
    mine.stores = into.stores;
    return std::make_unique<Snapshot>(mine, std::move(into.parts), at.bytes, theirs,
                                      opened->as.offset + at.offset, newer_than,
                                      std::move(version));
  };
  return start(opened, into.data, into.bytes, timeout_ms, make);
}

// An answer comes from its linker's thread, which has seen the request after what was written.
WorkPtr Remote::fence(const OpenedPtr& opened, int64_t timeout_ms) {
  if (const Status failure = opened->failure(); !failure.ok()) return ended(failure);
  auto fence = std::make_unique<Fence>();
  const WorkPtr work = fence->work = std::make_shared<Work>();
  fence->deadline_ns = deadline_ns(timeout_ms);
  if (opened->session->link().slab.base == nullptr) {
    fence->then = request({{fields::kDo, fields::kFence}}, timeout_ms);
    fence->then->work = work;
  }
  const Status submitted = context_.sessions.submit(*opened->session, std::move(fence));
  return submitted.ok() ? work : ended(submitted);
}

}  // namespace rdmacoll
