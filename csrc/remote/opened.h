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
#include "csrc/engine/session/session.h"
#include "csrc/memory/region.h"
#include "csrc/remote/exposure.h"

namespace rdmacoll {

// Memory of another process. It is closed when nobody here holds it: neither Remote, until the
// owner says that it is to be forgotten, nor what is under way there.
struct OpenMemory {
  OpenMemory(SessionPtr its_session, Region its_region)
      : session(std::move(its_session)), region(its_region) {}
  ~OpenMemory() {
    const Link& link = session->link();
    link.transport->close_region(link.peer, region.id);
  }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;

  const SessionPtr session;
  const Region region;
};
using OpenMemoryPtr = std::shared_ptr<OpenMemory>;

class Opened {
 public:
  // line: in which it notifies the owner.
  Opened(const OpenMemoryPtr& memory, std::string who, ExposureInfo info, uint64_t offset,
         uint64_t number, std::optional<uint32_t> line)
      : session(memory->session),
        who(std::move(who)),
        info(std::move(info)),
        offset(offset),
        number(number),
        line(line),
        memory_(memory) {}

  const SessionPtr session;
  const std::string who;
  const ExposureInfo info;
  const uint64_t offset;  // in the memory
  const uint64_t number;  // this process's
  const std::optional<uint32_t> line;

  // Its owner has taken it back.
  void revoke() { revoked_.store(true, std::memory_order_seq_cst); }
  // Ok, or why it cannot be read or written any more.
  Status failure() const;
  // Why, where use() has returned nothing.
  Status why_not() const;

  // What holds it while something is under way there; nullptr: it is revoked.
  class Use {
   public:
    Use(std::atomic<uint64_t>& uses, OpenMemoryPtr memory)
        : memory(std::move(memory)), uses_(uses) {}
    ~Use() { uses_.fetch_sub(1); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    const OpenMemoryPtr memory;

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
