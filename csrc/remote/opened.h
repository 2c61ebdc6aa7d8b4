// Opened: what this process has opened of another one's exposures, and the memory that it lies in.
// Floor: remote. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/engine/connect/tagged_fields.h"
#include "csrc/engine/session/session.h"
#include "csrc/memory/region.h"
#include "csrc/remote/exposure.h"

namespace rdmacoll {

// Memory of another process. It is closed when nobody here holds it: neither Remote, until the
// owner says that it is to be forgotten or the session ends, nor what is under way there.
struct OpenMemory {
  OpenMemory(const Link& link, const Region& its_region)
      : region(its_region), transport_(*link.transport), owner_(link.peer) {}
  ~OpenMemory() { transport_.close_region(owner_, region.id); }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;

  const Region region;

 private:
  Transport& transport_;
  const PeerId owner_;
};
using OpenMemoryPtr = std::shared_ptr<OpenMemory>;

// Of an opening, what its two processes have said to each other.
struct OpenedAs {
  uint64_t offset = 0;                  // in the memory
  uint64_t number = 0;                  // this process's; later ones are larger
  std::optional<uint32_t> line{};       // of the owner, in which this process notifies it
  std::optional<uint32_t> stop_line{};  // of this process, in which the owner says to stop
  TaggedFields closing{};               // what the owner is told when it is closed
};

class Opened {
 public:
  Opened(SessionPtr session, const OpenMemoryPtr& memory, std::string who, ExposureInfo info,
         OpenedAs as)
      : session(std::move(session)),
        who(std::move(who)),
        info(std::move(info)),
        as(std::move(as)),
        memory_(memory) {}
  ~Opened() {
    if (as.stop_line) session->give_line_back(*as.stop_line);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  const SessionPtr session;
  const std::string who;
  const ExposureInfo info;
  const OpenedAs as;

  // Its owner has taken it back.
  void revoke() { revoked_.store(true, std::memory_order_seq_cst); }
  bool is_revoked() const;
  // Ok, or why it cannot be read or written any more.
  Status failure() const;
  // Why, where use() has returned nothing.
  Status why_not() const;

  // Whether it is read without a processor of its owner. A transport to whose peers nothing has to
  // be registered has them answer.
  bool is_read_alone() const {
    const auto memory = memory_.lock();
    return memory != nullptr &&
           (memory->region.base != nullptr || !session->link().transport->info().any_memory);
  }

  // What holds it while something is under way there; nullptr: it is revoked.
  class Use {
   public:
    Use(std::atomic<uint64_t>& uses, OpenMemoryPtr memory)
        : memory(std::move(memory)), uses_(uses) {}
    ~Use() { uses_.fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    const OpenMemoryPtr memory;
    std::shared_ptr<const void> mine;  // of this process, what it goes from or to

   private:
    std::atomic<uint64_t>& uses_;  // of the Opened, which whoever has this holds, too
  };
  std::shared_ptr<Use> use();
  bool is_used() const { return uses_.load() > 0; }

  // Whether the counter is larger than all before it; then it is the newest.
  bool take_notification(uint64_t counter);

 private:
  const std::weak_ptr<OpenMemory> memory_;
  std::atomic<bool> revoked_{false};
  std::atomic<uint64_t> uses_{0};
  std::mutex mutex_;
  uint64_t notified_ = 0;
};

using OpenedPtr = std::shared_ptr<Opened>;

}  // namespace rdmacoll
