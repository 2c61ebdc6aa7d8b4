// Remote: memory of other processes as a device, and of this one for others: what is exposed here,
// and what is open there. The face of the floor.
// Floor: remote. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/engine/drive/progress.h"
#include "csrc/engine/session/sessions.h"
#include "csrc/remote/exposure.h"
#include "csrc/remote/grants.h"
#include "csrc/remote/mailboxes.h"
#include "csrc/remote/opened.h"
#include "csrc/remote/remote_memory.h"
#include "csrc/remote/snapshot.h"

namespace rdmacoll {

// What it stands on; `keeps` holds all of it.
struct RemoteContext {
  Transports& transports;
  Sessions& sessions;
  Progress& progress;
  const Clock& clock;
  std::shared_ptr<void> keeps;
};

struct RemoteStats {
  uint64_t memory_bytes = 0;  // of this process, that others can reach
  uint64_t exposures = 0;
  uint64_t openings = 0;    // of these, by others
  uint64_t opened = 0;      // of others, by this process
  uint64_t lent_bytes = 0;  // of the memory, what others have allocated
  uint64_t posted = 0;      // letters to others that they have not taken yet
  uint64_t sessions = 0;    // with other processes
};

// A tensor that is posted: a range of memory of this process.
struct Parcel {
  RemoteMemoryPtr memory;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string meta{};  // what the bytes are
};

struct VersionsAt {
  uint64_t offset = 0;
  uint64_t bytes = 0;  // of each
};
// Parts of a version, and the bytes of this process that they are read into.
struct SnapshotInto {
  void* data = nullptr;
  uint64_t bytes = 0;
  std::vector<MovedRange> parts{};
  Stores stores = Stores::Cached;  // Streamed: it is part of more than stays in the caches
};

class Remote final : public Responder {
 public:
  // One for the sessions of a process.
  explicit Remote(RemoteContext context);
  // Nothing is exposed any more.
  ~Remote() override;
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  // --- this process -----------------------------------------------------------------------------
  Result<RemoteMemoryPtr> allocate(uint64_t bytes, Others others);
  // That in which these bytes lie; nullptr: they are in none.
  RemoteMemoryPtr memory_of(const void* data, uint64_t bytes) const {
    return memories_->find(data, bytes);
  }
  // Others can open it by its name from now on. The memory has the rights that the info says, or
  // more. InvalidArgument: the name is taken, empty or too long, or the range is not of the memory.
  Status expose(ExposureInfo info, RemoteMemoryPtr memory, uint64_t offset);
  // nullptr: nothing is exposed under the name.
  std::shared_ptr<const Exposure> exposed(const std::string& name) const { return exposure(name); }
  // Ends once it is true, which is asked in every round of the driver. what: for people, of what
  // did not come in time.
  WorkPtr watch(std::function<bool()> is_true, std::string what, int64_t timeout_ms);
  // The most that anybody who has opened it has notified.
  Result<uint64_t> notified(const std::string& name) const;
  // Ends once that is at least so much.
  Result<WorkPtr> wait_notified(const std::string& name, uint64_t at_least, int64_t timeout_ms);
  // Nobody opens it any more, and who has it open reads and writes it no more. Who has not said so
  // in time is cut off, and named: what it still writes changes nothing here (RemoteMemory). With
  // it, who has opened other names of that memory has to open them anew.
  Result<std::vector<std::string>> revoke(const std::string& name, int64_t timeout_ms,
                                          const InterruptCheck& interrupt);
  // Others may allocate so many bytes of this process's memory from now on, in all; 0: none.
  void lend(uint64_t bytes) { lends_bytes_.store(bytes); }
  // InvalidArgument: the name is taken, or none.
  Status open_mailbox(const std::string& name);
  // Who has posted what was not taken yet is told so.
  Status close_mailbox(const std::string& name);
  // nullptr: there is none of the name.
  MailboxPtr mailbox(const std::string& name) const { return mailboxes_.find(name); }
  // The next parcel that was posted there, to be read; closing it tells its sender.
  Result<OpenedPtr> take(const std::string& name, int64_t timeout_ms,
                         const InterruptCheck& interrupt);
  RemoteStats stats() const;

  // --- others -----------------------------------------------------------------------------------
  // None of these takes an Opened that was closed. What is read into, or written from, stays valid
  // until the work is done.
  //
  // What is exposed under the name by the process of an address, which `who` names to people; waits
  // until it is.
  Result<OpenedPtr> open(const std::string& address, const std::string& who,
                         const std::string& name, int64_t timeout_ms,
                         const InterruptCheck& interrupt);
  // Memory of its own there, zeroed, for this process alone; it is freed when it is closed, or this
  // process ends. Waits until the other lends some. System: it has no room for so much.
  Result<OpenedPtr> allocate_there(const std::string& address, const std::string& who,
                                   uint64_t bytes, int64_t timeout_ms,
                                   const InterruptCheck& interrupt);
  // Puts a letter into a mailbox there; waits until there is one and it has room. The work ends
  // when the parcel was taken, and must not change before that.
  Result<WorkPtr> post(const std::string& address, const std::string& who, const std::string& name,
                       Parcel parcel, int64_t timeout_ms, const InterruptCheck& interrupt);
  void close(const OpenedPtr& opened);
  WorkPtr read(const OpenedPtr& opened, uint64_t offset, void* data, uint64_t bytes,
               int64_t timeout_ms);
  // Ranges, counted from the beginning of what is open, into the bytes that begin at `data`.
  WorkPtr read(const OpenedPtr& opened, void* data, uint64_t bytes, std::vector<MovedRange> ranges,
               int64_t timeout_ms);
  // notify: 0: it is not.
  WorkPtr write(const OpenedPtr& opened, uint64_t offset, const void* data, uint64_t bytes,
                uint64_t notify, int64_t timeout_ms);
  // Ranges, as of read(), from the bytes that begin at `data`. No two of them overlap there.
  WorkPtr write(const OpenedPtr& opened, const void* data, uint64_t bytes,
                std::vector<MovedRange> ranges, uint64_t notify, int64_t timeout_ms);
  // Changes the word at the offset in one step, whoever else updates it. before: what was there; is
  // set when the work ends well. A work that ends otherwise may have changed it.
  WorkPtr update(const OpenedPtr& opened, uint64_t offset, const Update& update,
                 std::shared_ptr<uint64_t> before, int64_t timeout_ms);
  // newer_than, version: as of Snapshot.
  WorkPtr snapshot(const OpenedPtr& opened, void* data, uint64_t bytes,
                   std::vector<MovedRange> parts, uint64_t newer_than,
                   std::shared_ptr<uint64_t> version, int64_t timeout_ms);
  // The same of versions that lie somewhere in it, behind a statement of their own.
  WorkPtr snapshot(const OpenedPtr& opened, VersionsAt at, SnapshotInto into,
                   std::shared_ptr<uint64_t> version, int64_t timeout_ms);
  // Ends when all that this process has written there before can be seen there.
  WorkPtr fence(const OpenedPtr& opened, int64_t timeout_ms);

  Status wait(Work& work, int64_t timeout_ms, const InterruptCheck& interrupt);

  // --- the sessions (Responder) -----------------------------------------------------------------
  Result<std::string> answer(const SessionPtr& session, const std::string& text) override;
  void note_end(const SessionPtr& session) override;

 private:
  Result<std::string> answer_open(const SessionPtr& session, const TaggedFields& asked);
  Result<std::string> answer_close(const SessionPtr& session, const TaggedFields& asked);
  Result<std::string> answer_revoke(const SessionPtr& session, const TaggedFields& asked);
  Result<std::string> answer_forget(const SessionPtr& session, const TaggedFields& asked);
  Result<std::string> answer_allocate(const SessionPtr& session, const TaggedFields& asked);
  Result<std::string> answer_update(const SessionPtr& session, const TaggedFields& asked);
  Result<std::string> answer_post(const SessionPtr& session, const TaggedFields& asked);
  Result<std::string> answer_ended(const SessionPtr& session, const TaggedFields& asked);
  // What one who opens it is told; nothing: not now.
  Result<TaggedFields> describe(const Exposure& exposure, const SessionPtr& session) const;
  // Tells all who have it open to stop; those who have not said that they have.
  Result<std::vector<Exposure::Opening>> stop(Exposure& exposure, int64_t until_ns,
                                              const InterruptCheck& interrupt);
  std::vector<std::shared_ptr<Exposure>> exposures_in(const RemoteMemoryPtr& memory) const;
  std::shared_ptr<Exposure> exposure(const std::string& name) const;
  static Status not_exposed(const std::string& name);
  // is_again: the flight recorder need not know.
  Result<std::string> ask(const SessionPtr& session, const TaggedFields& what, int64_t timeout_ms,
                          const InterruptCheck& interrupt, bool is_again);
  RequestPtr request(const TaggedFields& what, int64_t timeout_ms) const;
  // Asks until the reply is `enough`, or the deadline has passed: then what it was at last.
  Result<std::string> ask_until(const SessionPtr& session, const TaggedFields& what,
                                Deadline deadline, const InterruptCheck& interrupt,
                                const std::function<bool(const std::string&)>& enough);
  void tell_closed(Session& session, const TaggedFields& closing);
  // Nobody will take it.
  void refuse(const Letter& letter);
  // as: its offset and line come from what was told.
  Result<OpenedPtr> make_opened(const SessionPtr& session, const std::string& who,
                                const std::string& name, const TaggedFields& told, OpenedAs as,
                                Deadline deadline);
  uint64_t next_number();
  // For people at the other process.
  static std::string who_asks();
  Result<OpenMemoryPtr> open_memory(const SessionPtr& session, const std::string& key,
                                    Deadline deadline);
  WorkPtr begin_snapshot(const OpenedPtr& opened, VersionsAt at, SnapshotInto into,
                         uint64_t newer_than, std::shared_ptr<uint64_t> version,
                         int64_t timeout_ms);
  // make: of this process's bytes and the other memory's region, a transfer.
  template <typename Make>
  WorkPtr start(const OpenedPtr& opened, const void* data, uint64_t bytes, int64_t timeout_ms,
                Make make);
  // use: that of what is open, which the transfer holds until it has ended.
  WorkPtr submit(const OpenedPtr& opened, std::shared_ptr<Opened::Use> use,
                 std::unique_ptr<Transfer> transfer, int64_t timeout_ms);
  struct Mine {
    LocalSlice slice;
    std::shared_ptr<const void> in_use{};  // what must be held until the transfer has ended
  };
  Mine local(const Region& theirs, const void* data, uint64_t bytes) const;
  int64_t deadline_ns(int64_t timeout_ms) const;

  RemoteContext context_;
  const std::shared_ptr<RemoteMemories> memories_ = std::make_shared<RemoteMemories>();
  std::atomic<uint64_t> lends_bytes_{0};
  Grants lent_;
  Grants posted_;
  Mailboxes mailboxes_;
  std::mutex cut_off_mutex_;  // one at a time
  mutable std::mutex mutex_;  // what follows; never the driver's
  uint64_t numbers_ = 0;
  std::map<std::string, std::shared_ptr<Exposure>> exposures_;
  std::map<uint64_t, OpenedPtr> opened_;  // by their numbers
  // By their keys: it is opened once, and a session is not used because of it.
  std::map<std::pair<const Session*, std::string>, OpenMemoryPtr> open_memories_;
};

}  // namespace rdmacoll
