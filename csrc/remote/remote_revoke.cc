// Remote: takes back what this process exposes, also from those who do not answer. Floor: remote.
// Thread: any.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "csrc/engine/session/read_write.h"
#include "csrc/remote/fields.h"
#include "csrc/remote/remote.h"

namespace rdmacoll {
namespace {

// How soon one who still reads or writes is asked again to stop.
constexpr std::chrono::milliseconds kAskToStopAgain{1};
// How long those have to stop who do nothing wrong, but use memory from which others are cut off;
// and this process itself.
constexpr int64_t kBesideMs = 1000;

}  // namespace

Result<std::vector<std::string>> Remote::revoke(const std::string& name, int64_t timeout_ms,
                                                const InterruptCheck& interrupt) {
  std::shared_ptr<Exposure> revoked;
  {
    const std::lock_guard lock(mutex_);
    const auto found = exposures_.extract(name);
    if (!found) return not_exposed(name);
    revoked = found.mapped();
  }
  auto late = stop(*revoked, deadline_ns(timeout_ms), interrupt);
  if (!late.ok()) return late.status();
  std::vector<std::string> names;
  for (const Exposure::Opening& opening : late.value()) names.push_back(opening.session->name());
  // Who can only read changes nothing, and sees that it is revoked once it has read.
  if (names.empty() || revoked->memory->others() == Others::OnlyRead) return names;
  const std::lock_guard one(cut_off_mutex_);
  for (const auto& beside : exposures_in(revoked->memory)) {
    auto also_late = stop(*beside, deadline_ns(kBesideMs), interrupt);
    if (!also_late.ok()) return also_late.status();
  }
  const auto in_driver = [&](std::function<bool()> what) {
    auto work = std::make_shared<Work>();
    context_.sessions.submit({.work = work,
                              .deadline_ns = deadline_ns(kBesideMs),
                              .is_true = std::move(what),
                              .what = "this process itself still reads or writes there"});
    return wait(*work, -1, {});
  };
  const Status done = revoked->memory->cut_off(in_driver);
  if (done.ok()) return names;
  return Status(done.code(),
                "'" + name + "' is revoked, and nobody opens it any more, but " + names[0] +
                    " may still write there, and could not be cut off: " + done.message());
}

std::vector<std::shared_ptr<Exposure>> Remote::exposures_in(const RemoteMemoryPtr& memory) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Exposure>> all;
  for (const auto& [name, exposure] : exposures_) {
    if (exposure->memory == memory) all.push_back(exposure);
  }
  return all;
}

// The line tells also a process that is stopped: it looks there when it has read or written.
Result<std::vector<Exposure::Opening>> Remote::stop(Exposure& exposure, int64_t until_ns,
                                                    const InterruptCheck& interrupt) {
  struct Asked {
    Exposure::Opening opening;
    RequestPtr request;
    std::optional<FlightWaitGuard> noted{};  // once it is asked more than once
  };
  const auto ask = [&](const Exposure::Opening& opening, bool is_again) {
    auto made =
        request({{fields::kDo, fields::kRevoke}, {fields::kNumber, std::to_string(opening.number)}},
                std::max<int64_t>((until_ns - context_.clock.now_ns()) / 1'000'000, 1));
    if (is_again) made->kind = FlightKind::None;
    const Status sent = context_.sessions.submit(*opening.session, made);
    return sent.ok() ? made : nullptr;
  };
  std::vector<Asked> asked;
  for (const Exposure::Opening& opening : exposure.openings()) {
    if (opening.stop_line) {
      auto told = std::make_unique<Write>(
          LocalSlice{}, opening.session->link().slab, 0,
          Write::Notification{.line = *opening.stop_line, .counter = opening.number});
      told->work = std::make_shared<Work>();
      told->deadline_ns = until_ns;
      static_cast<void>(context_.sessions.submit(*opening.session, std::move(told)));
    }
    asked.push_back({opening, ask(opening, false)});
  }
  while (true) {
    std::erase_if(asked, [&](Asked& one) {
      const bool has_ended = one.request == nullptr || !one.opening.session->failure().ok();
      const bool has_stopped =
          !has_ended && one.request->work->done() && one.request->work->status().ok();
      if (!has_ended && !has_stopped) return false;
      exposure.close(one.opening.session, one.opening.number);
      return true;
    });
    if (asked.empty() || context_.clock.now_ns() >= until_ns) break;
    for (Asked& one : asked) {
      const bool still_works =
          one.request->work->done() && one.request->work->status().code() == StatusCode::Aborted;
      if (!still_works) continue;
      if (!one.noted) {
        one.noted.emplace(context_.sessions.note_wait(*one.opening.session, FlightKind::Revoke));
      }
      one.request = ask(one.opening, true);
    }
    if (interrupt) RDMACOLL_RETURN_IF_ERROR(interrupt());
    std::this_thread::sleep_for(kAskToStopAgain);
  }
  std::vector<Exposure::Opening> late;
  for (const Asked& one : asked) late.push_back(one.opening);  // each may still use its line
  return late;
}

}  // namespace rdmacoll
