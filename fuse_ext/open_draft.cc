// OpenDraft. Floor: fuse_ext. Thread: any.
#include "fuse_ext/open_draft.h"

#include <chrono>
#include <utility>

#include "fuse_ext/problem.h"

namespace rdmacoll::fuse {
namespace {

int64_t now_ns() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace

files::Draft::Host DraftHost::host() {
  return {tables_, blocks_, [this] { return new_table(); }};
}

Result<uint32_t> DraftHost::new_table() {
  const std::lock_guard lock(mutex_);
  try {
    if (new_tables_.empty()) new_tables_ = names_.new_tables();
  } catch (const Problem& problem) {
    return Status(StatusCode::PeerFailed, problem.why);
  }
  const uint32_t table = new_tables_.back();
  new_tables_.pop_back();
  return table;
}

void DraftHost::forget_new_tables() {
  const std::lock_guard lock(mutex_);
  new_tables_.clear();
}

OpenDraft::OpenDraft(DraftHost& host, Place place, Entry before, bool appends)
    : host_(host),
      place_(std::move(place)),
      entry_(std::move(before)),
      hold_(host.names().hold(place_, entry_)),
      appends_(appends) {
  draft_.emplace(host_.host(), entry_.parts);
}

OpenDraft::~OpenDraft() {
  draft_->publish({});
  try {
    free_unused();
    host_.names().release(hold_);
  } catch (const Problem&) {
    // The Store is gone, and the job with it.
  }
}

void OpenDraft::free_unused() {
  const auto unused = draft_->take_unused();
  if (!unused.empty()) host_.names().free(unused);
}

uint64_t OpenDraft::read(uint64_t first, std::span<std::byte> out) {
  const std::lock_guard lock(mutex_);
  return take_or_throw(draft_->read(first, out));
}

template <typename Act>
void OpenDraft::with_room(Act act) {
  Status done = act();
  if (done.code() == StatusCode::InvalidArgument) {
    host_.forget_new_tables();
    done = act();
  }
  if (done.code() == StatusCode::System && host_.names().wait_for_room()) done = act();
  throw_if_failed(done);
}

void OpenDraft::write(uint64_t first, std::span<const std::byte> data,
                      const std::function<void()>& accepted) {
  const std::lock_guard lock(mutex_);
  const bool takes = draft_->takes(first, data.size());
  if (takes) accepted();
  with_room([&] { return draft_->write(first, data); });
  if (!takes) accepted();
  entry_.modified_ns = now_ns();
}

void OpenDraft::resize(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  with_room([&] { return draft_->resize(bytes); });
  entry_.modified_ns = now_ns();
}

void OpenDraft::change(std::optional<int64_t> modified_ns, std::optional<uint32_t> mode) {
  const std::lock_guard lock(mutex_);
  if (modified_ns) entry_.modified_ns = *modified_ns;
  if (mode) entry_.mode = *mode;
  is_changed_ = true;
}

Entry OpenDraft::seen() {
  const std::lock_guard lock(mutex_);
  return entry_;
}

uint64_t OpenDraft::bytes() {
  const std::lock_guard lock(mutex_);
  return draft_->bytes();
}

Entry OpenDraft::store() {
  const std::lock_guard lock(mutex_);
  if (is_removed_ || (!draft_->is_changed() && !is_changed_)) return entry_;
  with_room([&] { return draft_->store(); });
  Entry wanted = entry_;
  wanted.parts = draft_->parts();
  const auto added = draft_->added();
  if (appends_ && added && !is_changed_) {
    wanted.parts = *added;
    entry_ = host_.names().append(place_, wanted, draft_->new_tables(), hold_);
  } else {
    host_.names().put(place_, wanted, draft_->new_tables(), hold_);
    entry_ = std::move(wanted);
  }
  draft_->publish(entry_.parts);
  is_changed_ = false;
  free_unused();
  return entry_;
}

Place OpenDraft::place() {
  const std::lock_guard lock(mutex_);
  return place_;
}

void OpenDraft::move(const Place& to) {
  const std::lock_guard lock(mutex_);
  place_ = to;
}

void OpenDraft::remove() {
  const std::lock_guard lock(mutex_);
  is_removed_ = true;
}

}  // namespace rdmacoll::fuse
